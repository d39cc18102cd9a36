import { type AgentFacts, type Facts, osFamily, readAgent } from './facts.ts';
import { isAppliance, isPhoneView, onlyWhere, type Rule, rule, windowOutgrowsScreen } from './rule.ts';

/**
 * Rules of kind T: the browser contradicts itself. Each exemption is a browser that does so honestly
 * (signals.md section 2).
 */

const isKnownFamily = (family: string): boolean => family !== 'unknown';

/** iPadOS and iOS in desktop mode call themselves a Macintosh. */
const appleTwins = (a: string, b: string): boolean => new Set([a, b, 'ios', 'macos']).size === 2;

function systemsDiffer(page: string | null | undefined, worker: string | null | undefined): boolean {
  const [a, b] = [osFamily(page), osFamily(worker)];
  return isKnownFamily(a) && isKnownFamily(b) && a !== b && !appleTwins(a, b);
}

/**
 * `platform` is compared with `platform`: on Android both say Linux. The phone view changes only the page's.
 */
function workerOsDiffers(facts: Facts): boolean {
  const { page, worker } = facts.signals;
  if (systemsDiffer(page?.userAgent, worker?.userAgent)) return true;
  const platforms =
    systemsDiffer(page?.platform, worker?.platform) ||
    systemsDiffer(page?.uaData?.platform, worker?.uaData?.platform);
  return platforms && !isPhoneView(facts);
}

/** Android and ChromeOS are Linux to `navigator.platform`. */
const LINUX_KERNELS = new Set(['android', 'chromeos', 'linux']);

function platformDiffers({ signals, defenses }: Facts): boolean {
  const agent = osFamily(signals.page?.userAgent);
  const platform = osFamily(signals.page?.platform);
  if (
    !isKnownFamily(agent) ||
    !isKnownFamily(platform) ||
    agent === platform ||
    defenses.includes('firefox-rfp')
  )
    return false;
  return !appleTwins(agent, platform) && !(LINUX_KERNELS.has(agent) && LINUX_KERNELS.has(platform));
}

function hintPlatformDiffers({ signals, network }: Facts): boolean {
  const header = network.secChUaPlatform?.replace(/^"|"$/g, '');
  const reported = signals.page?.uaData?.platform;
  if (!header || !reported) return false;
  return header.toLowerCase() !== reported.toLowerCase();
}

function uaDataOsDiffers({ signals, agent }: Facts): boolean {
  const reported = osFamily(signals.page?.uaData?.platform);
  return isKnownFamily(reported) && isKnownFamily(agent.os) && reported !== agent.os;
}

function brandListsDiffer({ signals }: Facts): boolean {
  const { brands, fullVersionList } = signals.page?.uaData ?? {};
  if (!brands?.length || !fullVersionList?.length) return false;
  const names = (list: readonly { readonly brand: string }[]): string =>
    JSON.stringify(list.map((entry) => entry.brand).sort());
  return names(brands) !== names(fullVersionList);
}

function workerRendererDiffers({ signals, defenses }: Facts): boolean {
  const page = signals.graphics?.renderer;
  const worker = signals.worker?.renderer;
  return page != null && worker != null && page !== worker && defenses.length === 0;
}

/** Android's web view says so in its name or, where an app gave it another, in its brands. */
export function isWebView({ signals, agent }: Facts): boolean {
  const { userAgent, uaData } = signals.page ?? {};
  if (/; wv\)|\bWebView\b/.test(userAgent ?? '')) return true;
  return agent.os === 'android' && (uaData?.brands ?? []).some(({ brand }) => brand === 'Android WebView');
}

const V8_EVAL_LENGTH = 33;
const OTHER_EVAL_LENGTH = 37;
const WEBVIEW = /; wv\)/;

/** The words in which each engine refuses to read a property of null. */
const ERROR_TEXT = {
  blink: /Cannot read propert/,
  gecko: /has no properties|can't access property/,
  webkit: /is not an object/,
} as const;

/**
 * True if every mark is of another engine: then it is another browser with Chromium's name, not a disguised
 * Chromium.
 */
export function isOtherEngine({ signals }: Facts): boolean {
  const { engine, page } = signals;
  const text = engine?.errorMessage ?? '';
  const spoken = ERROR_TEXT.gecko.test(text) || ERROR_TEXT.webkit.test(text);
  return spoken && engine?.evalLength === OTHER_EVAL_LENGTH && page?.uaData == null;
}

function engineContradicts(facts: Facts): boolean {
  const { signals, agent } = facts;
  const { engine, page } = signals;
  if (agent.engine === 'unknown' || WEBVIEW.test(page?.userAgent ?? '') || isAppliance(facts)) return false;
  const isBlink = agent.engine === 'blink';
  // Another length is a page or an add-on that wraps eval, not another engine.
  if (engine?.evalLength === (isBlink ? OTHER_EVAL_LENGTH : V8_EVAL_LENGTH)) return true;
  const text = engine?.errorMessage ?? '';
  const spoken = Object.entries(ERROR_TEXT).find(([, pattern]) => pattern.test(text))?.[0];
  if (spoken !== undefined && spoken !== agent.engine) return true;
  return !isBlink && page?.uaData != null;
}

/** A privacy extension patches read-outs; only a disguise patches who the browser says it is. */
const IDENTITY_NATIVES = new Set([
  'webdriver',
  'userAgent',
  'platform',
  'plugins',
  'languages',
  'vendor',
  'Function.toString',
]);

const identityPatched = ({ signals }: Facts): boolean =>
  (signals.tells?.patched ?? []).some((name) => IDENTITY_NATIVES.has(name));

/**
 * The user agent without its first parenthesised part. A regular expression would take quadratic time on
 * unclosed parentheses.
 */
function withoutPlatform(userAgent: string): string {
  const open = userAgent.indexOf('(');
  const close = userAgent.indexOf(')', open);
  return open === -1 || close === -1 ? userAgent : userAgent.slice(0, open) + userAgent.slice(close + 1);
}

/** Firefox RFP names one operating system in the request and another in the page. */
function headerDiffers({ signals, network, defenses }: Facts): boolean {
  const page = signals.page?.userAgent;
  const header = network.userAgent;
  if (page == null || header === null || page === header) return false;
  return !(defenses.includes('firefox-rfp') && withoutPlatform(page) === withoutPlatform(header));
}

/** At least this many of the four must be present: a missing one proves nothing. */
const HINTS_NEEDED = 3;

/** Brave reduces these values and never empties them; desktop Linux leaves only platformVersion empty. */
function hintsEmptied(facts: Facts): boolean {
  const uaData = facts.signals.page?.uaData;
  if (!uaData?.brands?.length || isWebView(facts) || uaData.fullVersionList?.length) return false;
  const { architecture, bitness, model, platformVersion } = uaData;
  const hints = [architecture, bitness, model, platformVersion].filter((value) => value != null);
  return hints.length >= HINTS_NEEDED && hints.every((value) => value === '');
}

function gpuContradicts({ signals, agent }: Facts): boolean {
  const renderer = signals.graphics?.renderer;
  if (renderer == null || renderer.includes('or similar') || !isKnownFamily(agent.os)) return false;
  if (/Direct3D/.test(renderer) && agent.os !== 'windows') return true;
  if (/\bMetal\b/.test(renderer) && agent.os !== 'macos' && agent.os !== 'ios') return true;
  return agent.os === 'windows' && /Adreno|Mali/.test(renderer) && !/Direct3D11/.test(renderer);
}

/** Only phones are checked: Firefox with resistFingerprinting reports five touch points on a desktop. */
function phoneWithoutTouch({ signals, agent }: Facts): boolean {
  const phone = agent.mobile && (agent.os === 'android' || agent.os === 'ios');
  return phone && signals.page?.maxTouchPoints === 0;
}

/**
 * Parts a and b of JA4, TLS over TCP or QUIC. Part b is the list of ciphers, which outlives many versions.
 * Browsers are from FoxIO's published list and, like the libraries, as measured: Chromium 156, Firefox 153,
 * WebKitGTK 2.50; Python 3.11, Go 1.26, Node 20, Java 17, curl 7.88.
 */
const FAMILY_OF_JA4: readonly (readonly [RegExp, 'blink' | 'gecko' | 'webkit' | 'library'])[] = [
  [/^[tq]13[di]15\d\dh[123]_(?:8daaf6152771|16476d049b0b)$/, 'blink'],
  [/^[tq]13[di](?:17\d\dh[123]_5b57614c22b0|16\d\dh[123]_86a278354501)$/, 'gecko'],
  [/^[tq]13[di](?:20\d\dh[123]_a09f3c656075|29\d\dh2_723694b0fccc)$/, 'webkit'],
  [/^t13[di]\d{4}(?:h[12]|00)_(?:85036bcba153|9dc949149365|a33745022dd6|db35923f8641)$/, 'library'],
  // The ciphers of OpenSSL itself, with h2 as curl sends them: middleboxes that open TLS offer them without.
  [/^t13[di]\d{4}h2_e8f1e7e78f70$/, 'library'],
];

/** True if other software than the claimed browser began the TLS handshake. */
function tlsContradicts({ network, agent }: Facts): boolean {
  const ja4 = network.ja4?.split('_').slice(0, 2).join('_');
  if (ja4 === undefined || agent.engine === 'unknown') return false;
  const family = FAMILY_OF_JA4.find(([pattern]) => pattern.test(ja4))?.[1];
  return family !== undefined && family !== agent.engine;
}

/** The browser that the header claims, for the rules that judge only headers. */
export function headerAgent({ network }: Facts): AgentFacts {
  return readAgent(network.userAgent);
}

/** In the phone view of developer tools a computer contradicts the phone it shows. */
const outsidePhoneView = onlyWhere((facts) => !isPhoneView(facts));

/**
 * A setting or an add-on that gives the browser another name causes these. Developers use those, so a
 * debugger adds nothing.
 */
const ANOTHER_NAME = { withDebugger: 'usual', ofAnotherName: true } as const;

export const TAMPER_RULES: readonly Rule[] = [
  rule('T1', 'T', 0.35, workerOsDiffers, ANOTHER_NAME),
  rule('T2', 'T', 0.3, outsidePhoneView(platformDiffers), ANOTHER_NAME),
  rule('T3', 'T', 0.35, hintPlatformDiffers, ANOTHER_NAME),
  rule('T4', 'T', 0.3, outsidePhoneView(uaDataOsDiffers), ANOTHER_NAME),
  rule('T5', 'T', 0.35, brandListsDiffer),
  rule('T6', 'T', 0.3, workerRendererDiffers),
  rule('T7', 'T', 0.4, outsidePhoneView(engineContradicts), ANOTHER_NAME),
  rule('T8', 'T', 0.25, identityPatched, ANOTHER_NAME),
  rule('T9', 'T', 0.3, headerDiffers, ANOTHER_NAME),
  rule('T10', 'T', 0.2, hintsEmptied, ANOTHER_NAME),
  rule('T11', 'T', 0.3, outsidePhoneView(gpuContradicts), ANOTHER_NAME),
  rule('T12', 'T', 0.2, outsidePhoneView(phoneWithoutTouch), { withDebugger: 'usual' }),
  rule('T13', 'T', 0.3, windowOutgrowsScreen, { fact: 'screen-size' }),
  rule('N1', 'T', 0.4, tlsContradicts),
];
