import { nav, type UaData } from './navigator.ts';
import { attempt, type Brand, brands, flag, type Group, number, text, texts, within } from './read.ts';

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
    architecture: text(() => high['architecture']),
    bitness: text(() => high['bitness']),
    model: text(() => high['model']),
    platformVersion: text(() => high['platformVersion']),
    fullVersionList: brands(() => high['fullVersionList'] as Iterable<Brand>),
  };
}

export async function collectPage(): Promise<Page> {
  return {
    userAgent: text(() => nav().userAgent),
    appVersion: text(() => nav().appVersion),
    platform: text(() => nav().platform),
    vendor: text(() => nav().vendor),
    language: text(() => nav().language),
    languages: texts(() => nav().languages),
    webdriver: flag(() => nav().webdriver),
    hardwareConcurrency: number(() => nav().hardwareConcurrency),
    deviceMemory: number(() => nav().deviceMemory),
    maxTouchPoints: number(() => nav().maxTouchPoints),
    pluginCount: number(() => nav().plugins.length),
    pdfViewer: flag(() => nav().pdfViewerEnabled),
    cookies: flag(() => nav().cookieEnabled),
    brave: flag(() => 'brave' in nav()),
    chromeObject: flag(() => typeof (window as { chrome?: unknown }).chrome === 'object'),
    gpc: flag(() => nav().globalPrivacyControl),
    uaData: await uaData(attempt(() => nav().userAgentData)),
  };
}
