import { nav, type UaData } from './navigator.ts';
import { attempt, type Brand, brands, each, flag, type Group, number, text, texts, within } from './read.ts';

type Page = Group<'page'>;

const HINTS = ['architecture', 'bitness', 'model', 'platformVersion', 'fullVersionList'] as const;
/** Generous: these values are part of the identity, and null for a slow machine would be another visitor. */
const HINTS_MS = 1500;

async function uaData(source: UaData | null): Promise<Page['uaData']> {
  if (!source) return null;
  const high = (await within(HINTS_MS, () => source.getHighEntropyValues(HINTS))) ?? {};
  return {
    brands: brands(() => source.brands),
    mobile: flag(() => source.mobile),
    platform: text(() => source.platform),
    ...each(text, () => high, 'architecture', 'bitness', 'model', 'platformVersion'),
    fullVersionList: brands(() => high['fullVersionList'] as Iterable<Brand>),
  };
}

export async function collectPage(): Promise<Page> {
  return {
    ...each(text, nav, 'userAgent', 'appVersion', 'platform', 'vendor', 'language'),
    languages: texts(() => nav().languages),
    webdriver: flag(() => nav().webdriver),
    ...each(number, nav, 'hardwareConcurrency', 'deviceMemory', 'maxTouchPoints'),
    pluginCount: number(() => nav().plugins.length),
    pdfViewer: flag(() => nav().pdfViewerEnabled),
    cookies: flag(() => nav().cookieEnabled),
    brave: flag(() => 'brave' in nav()),
    chromeObject: flag(() => typeof (window as { chrome?: unknown }).chrome === 'object'),
    gpc: flag(() => nav().globalPrivacyControl),
    uaData: await uaData(attempt(() => nav().userAgentData)),
  };
}
