import { type Facts, type Rule, stating } from './facts.ts';
import { headerAgent, isOtherEngine, isWebView } from './tamper-rules.ts';
import { debuggerAttached, isStagedPhone } from './tools-window.ts';

/** M: odd, yet people have it too, so one alone is `unknown`. W: it only moves the score. */

const WEBVIEW = /; wv\)|\bWebView\b/;
const NO_POINTER_DEVICE = /\b(?:TV|SmartTV|HbbTV|Tizen|Web0S|PlayStation|Xbox|Nintendo|CrKey|AFT[A-Z])/i;
const MULTI_MONITOR_PX = 32;

function outerExceedsScreen({ signals }: Facts): boolean {
  const { outerWidth, outerHeight, width, height } = signals.screen ?? {};
  const exceeds = (outer: number | null | undefined, limit: number | null | undefined): boolean =>
    outer != null && limit != null && outer > limit + MULTI_MONITOR_PX;
  return exceeds(outerWidth, width) || exceeds(outerHeight, height);
}

function noPointer({ signals, agent }: Facts): boolean {
  const { pointer, hover } = signals.media ?? {};
  if (pointer !== 'none' || hover !== false || agent.mobile || agent.os === 'android') return false;
  return !NO_POINTER_DEVICE.test(signals.page?.userAgent ?? '');
}

/** Android that asks for the desktop site says Linux, and keeps its touch screen and its processor. */
export function isAndroidDesktopMode({ signals }: Facts): boolean {
  return (signals.page?.maxTouchPoints ?? 0) > 0 && /^Linux (?:arm|aarch)/.test(signals.page?.platform ?? '');
}

function noChromeObject(facts: Facts): boolean {
  const { signals, agent } = facts;
  const desktop = agent.browser === 'chrome' && !agent.mobile && agent.os !== 'android';
  if (!desktop || signals.page?.chromeObject !== false) return false;
  return !isWebView(facts) && !isAndroidDesktopMode(facts) && !isOtherEngine(facts);
}

const FIRST_CHROMIUM_WITH_HINTS = 89;

/** Chromium sends client hints and fetch metadata over https only. */
function hintsMissing(facts: Facts): boolean {
  const { network } = facts;
  const agent = headerAgent(facts);
  const sends = agent.browser === 'chrome' && agent.major >= FIRST_CHROMIUM_WITH_HINTS && network.https;
  if (!sends || isWebView(facts) || WEBVIEW.test(network.userAgent ?? '') || isOtherEngine(facts))
    return false;
  return !network.secChUa || !network.secFetchSite;
}

function languageMissing(facts: Facts): boolean {
  return headerAgent(facts).engine !== 'unknown' && !facts.network.acceptLanguage;
}

const baseLanguage = (tag: string): string => tag.trim().split(/[-;]/, 1)[0]?.toLowerCase() ?? '';

function languageDiffers({ signals, network, defenses }: Facts): boolean {
  const header = baseLanguage(network.acceptLanguage?.split(',', 1)[0] ?? '');
  const page = baseLanguage(signals.page?.language ?? '');
  if (header === '' || header === '*' || page === '' || defenses.includes('firefox-rfp')) return false;
  return header !== page;
}

const drawsInSoftware = ({ signals }: Facts): boolean =>
  /llvmpipe|softpipe|SwiftShader|Basic Render/i.test(signals.graphics?.renderer ?? '');

/**
 * What developers have besides their tools: another name in "Network conditions", a remote desktop, a virtual machine, a
 * second screen. M2 adds nothing about them.
 */
const OF_DEVELOPERS = new Set('T2 T4 T7 T10 T11 T12 T15 M1 M5 M9 N2'.split(' '));
/** Count little together with M2 or the rules above. */
const EXPLAINED = new Set([...OF_DEVELOPERS, 'A5', 'M7']);

function explainsDebugger(others: ReadonlySet<string>): boolean {
  const all = [...others];
  return all.every((id) => EXPLAINED.has(id)) && all.some((id) => OF_DEVELOPERS.has(id));
}

const medium = (id: string, weight: number, text: string, fires: Rule['fires']): Rule => {
  return { id, kind: 'M', weight, text, fires };
};

export const MEDIUM_RULES: readonly Rule[] = [
  stating('screen-size', medium('M1', 0.15, 'The window is larger than its screen.', outerExceedsScreen)),
  {
    ...medium(
      'M2',
      0.2,
      'A debugger is attached; people who have developer tools open look the same.',
      debuggerAttached,
    ),
    fact: 'debugger',
    demote: (others) => (explainsDebugger(others) ? 'W' : null),
  },
  stating(
    'debugger',
    medium(
      'M11',
      0.2,
      'A debugger shows the page as on a phone, in another way than developer tools do.',
      isStagedPhone,
    ),
  ),
  medium(
    'M4',
    0.15,
    'Two answers about notifications contradict each other.',
    // On an insecure origin the two differ honestly; the agent cannot seal there.
    (facts) => facts.signals.tells?.notificationMismatch === true && !isWebView(facts),
  ),
  stating('no-pointer', medium('M5', 0.15, 'A desktop browser without any pointing device.', noPointer)),
  medium('M6', 0.1, 'A desktop Chromium without the object that it always has.', noChromeObject),
  {
    ...medium('M7', 0.1, 'Graphics are drawn in software, as in a virtual machine.', ({ signals }) =>
      /SwiftShader/i.test(signals.graphics?.renderer ?? ''),
    ),
    fact: 'no-graphics-hardware',
    // People on virtual machines have names of other systems, tools, proxies and remote desktops as others do.
    demote: (others) => (others.size === 0 || others.has('T13') ? null : 'W'),
  },
  medium('M8', 0.15, 'The request names no language, which browsers always do.', languageMissing),
  stating(
    'no-pointer',
    medium(
      'M9',
      0.15,
      'A desktop browser with neither a pointing device nor graphics hardware.',
      (facts) => noPointer(facts) && (drawsInSoftware(facts) || noWebGl(facts)),
    ),
  ),
  medium(
    'M10',
    0.15,
    'A debugger is attached to the page and not to its worker, as developer tools never are.',
    ({ signals }) => signals.tells?.debugsPageAlone === true,
  ),
  medium('N2', 0.25, 'The request lacks headers that this browser always sends.', hintsMissing),
];

const screenIs = ({ signals }: Facts, width: number, height: number): boolean =>
  signals.screen?.width === width && signals.screen.height === height;

function windowFillsScreen({ signals }: Facts): boolean {
  const s = signals.screen;
  if (s?.width == null || s.height == null) return false;
  return (
    s.innerWidth === s.width &&
    s.outerWidth === s.width &&
    s.innerHeight === s.height &&
    s.outerHeight === s.height
  );
}

function innerExceedsOuter({ signals }: Facts): boolean {
  const { innerWidth, outerWidth, innerHeight, outerHeight } = signals.screen ?? {};
  const exceeds = (inner: number | null | undefined, outer: number | null | undefined): boolean =>
    inner != null && outer != null && outer > 0 && inner > outer;
  return exceeds(innerWidth, outerWidth) || exceeds(innerHeight, outerHeight);
}

function noWebGl({ signals }: Facts): boolean {
  return signals.graphics !== null && signals.graphics.renderer == null && signals.graphics.vendor == null;
}

const weak = (id: string, text: string, fires: Rule['fires'], weight = 0.02): Rule => {
  return { id, kind: 'W', weight, text, fires };
};

export const WEAK_RULES: readonly Rule[] = [
  weak('W1', 'The screen is 800 by 600.', (facts) => screenIs(facts, 800, 600)),
  weak('W2', 'Window, page and screen have one size.', windowFillsScreen),
  weak('W3', 'The page is larger than its window.', innerExceedsOuter),
  weak(
    'W4',
    'A desktop browser without plug-ins.',
    ({ signals, agent }) => signals.page?.pluginCount === 0 && !agent.mobile && agent.engine !== 'unknown',
  ),
  stating('no-graphics-hardware', weak('W5', 'Graphics are drawn in software.', drawsInSoftware)),
  weak('W6', 'The clock is set to UTC.', ({ signals }) => signals.time?.zone === 'UTC'),
  weak(
    'W9',
    'The page runs inside an application and not in a browser.',
    ({ signals }) => signals.tells?.processType != null || /\bElectron\//.test(signals.page?.userAgent ?? ''),
  ),
  stating('no-graphics-hardware', weak('W8', 'The browser has no 3D graphics.', noWebGl)),
  weak(
    'N4',
    'The connection comes from a hosting provider, as servers do and some private networks too.',
    ({ network }) => network.hosting === true,
  ),
  weak('N3', 'The request asks for another language than the page.', languageDiffers, 0.1),
];
