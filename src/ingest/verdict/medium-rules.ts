import type { Facts } from './facts.ts';
import {
  debuggerAttached,
  fillScreen,
  hasFired,
  isAndroidDesktopMode,
  isAppliance,
  isStagedPhone,
  type Rule,
  rule,
} from './rule.ts';
import { headerAgent, isOtherEngine, isWebView } from './tamper-rules.ts';

/**
 * Rules of kind M are odd, but people have them too, so one alone is `unknown`. Rules of kind W only move the
 * score.
 */

const WEBVIEW = /; wv\)|\bWebView\b/;
const MULTI_MONITOR_PX = 32;

function outerExceedsScreen({ signals }: Facts): boolean {
  const { outerWidth, outerHeight, width, height } = signals.screen ?? {};
  const exceeds = (outer: number | null | undefined, limit: number | null | undefined): boolean =>
    outer != null && limit != null && outer > limit + MULTI_MONITOR_PX;
  return exceeds(outerWidth, width) || exceeds(outerHeight, height);
}

function noPointer(facts: Facts): boolean {
  const { signals, agent } = facts;
  const { pointer, hover } = signals.media ?? {};
  if (pointer !== 'none' || hover !== false || agent.mobile || agent.os === 'android') return false;
  return !isAppliance(facts);
}

function noChromeObject(facts: Facts): boolean {
  const { signals, agent } = facts;
  const desktop = agent.browser === 'chrome' && !agent.mobile && agent.os !== 'android';
  if (!desktop || signals.page?.chromeObject !== false) return false;
  return !isWebView(facts) && !isAndroidDesktopMode(facts) && !isOtherEngine(facts) && !isAppliance(facts);
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

const baseLanguage = (tag: string): string => tag.trim().split(/[-;]/, 1)[0]?.toLowerCase() ?? '';

function languageDiffers({ signals, network, defenses }: Facts): boolean {
  const header = baseLanguage(network.acceptLanguage?.split(',', 1)[0] ?? '');
  const page = baseLanguage(signals.page?.language ?? '');
  if (header === '' || header === '*' || page === '' || defenses.includes('firefox-rfp')) return false;
  return header !== page;
}

const drawsInSoftware = ({ signals }: Facts): boolean =>
  /llvmpipe|softpipe|SwiftShader|Basic Render/i.test(signals.graphics?.renderer ?? '');

/** True if all other rules are usual for developers, or count little with a debugger. */
const explainsDebugger = (otherRules: readonly Rule[]): boolean =>
  otherRules.every(({ withDebugger }) => withDebugger !== undefined) &&
  otherRules.some(({ withDebugger }) => withDebugger === 'usual');

/** A browser under another name fires one of these. A headless one empties its data (T10) and fires none. */
const NAMES_ANOTHER_SYSTEM = ['T2', 'T3', 'T4', 'T9'] as const;

/**
 * A remote desktop can be made smaller than its window, which is M1; together with a third rule M1 explains
 * nothing.
 */
function isShrunkDesktop(otherRules: readonly Rule[]): boolean {
  const rest = otherRules.filter(({ fact }) => fact !== 'no-pointer');
  return rest.length === 1 && hasFired(rest, 'M1');
}

function explainsNoPointer(otherRules: readonly Rule[]): boolean {
  if (isShrunkDesktop(otherRules)) return true;
  const rest = otherRules.filter(({ withNoPointer }) => !withNoPointer);
  return (
    rest.every(({ ofAnotherName }) => ofAnotherName) &&
    NAMES_ANOTHER_SYSTEM.some((id) => hasFired(otherRules, id))
  );
}

const NO_POINTER = {
  fact: 'no-pointer',
  demote: (otherRules: readonly Rule[]) => (explainsNoPointer(otherRules) ? 'W' : null),
  withDebugger: 'usual',
  withNoPointer: true,
} as const;

export const MEDIUM_RULES: readonly Rule[] = [
  rule('M1', 'M', 0.15, outerExceedsScreen, { fact: 'screen-size', withDebugger: 'usual' }),
  rule('M2', 'M', 0.2, debuggerAttached, {
    fact: 'debugger',
    demote: (otherRules) => (explainsDebugger(otherRules) ? 'W' : null),
    withNoPointer: true,
  }),
  rule('M11', 'M', 0.2, isStagedPhone, { fact: 'debugger' }),
  // On an insecure origin the two may differ honestly, but the agent cannot seal there.
  rule('M4', 'M', 0.15, (facts) => facts.signals.tells?.notificationMismatch === true && !isWebView(facts)),
  rule('M5', 'M', 0.15, noPointer, NO_POINTER),
  rule('M6', 'M', 0.1, noChromeObject),
  rule('M7', 'M', 0.1, ({ signals }) => /SwiftShader/i.test(signals.graphics?.renderer ?? ''), {
    fact: 'no-graphics-hardware',
    // People on virtual machines use other names, developer tools, proxies and remote desktops too.
    demote: (otherRules) => (otherRules.length === 0 || hasFired(otherRules, 'T13') ? null : 'W'),
    withDebugger: 'harmless',
    withNoPointer: true,
  }),
  rule('M8', 'M', 0.15, (facts) => headerAgent(facts).engine !== 'unknown' && !facts.network.acceptLanguage),
  rule(
    'M9',
    'M',
    0.15,
    (facts) => noPointer(facts) && (drawsInSoftware(facts) || noWebGl(facts)),
    NO_POINTER,
  ),
  rule('M10', 'M', 0.15, ({ signals }) => signals.tells?.debugsPageAlone === true),
  rule('N2', 'M', 0.25, hintsMissing, { withDebugger: 'usual' }),
];

function innerExceedsOuter({ signals }: Facts): boolean {
  const { innerWidth, outerWidth, innerHeight, outerHeight } = signals.screen ?? {};
  const exceeds = (inner: number | null | undefined, outer: number | null | undefined): boolean =>
    inner != null && outer != null && outer > 0 && inner > outer;
  return exceeds(innerWidth, outerWidth) || exceeds(innerHeight, outerHeight);
}

function noWebGl({ signals }: Facts): boolean {
  return signals.graphics !== null && signals.graphics.renderer == null && signals.graphics.vendor == null;
}

export const WEAK_RULES: readonly Rule[] = [
  rule('W1', 'W', 0.02, ({ signals: { screen } }) => screen?.width === 800 && screen.height === 600),
  rule('W2', 'W', 0.02, fillScreen),
  rule('W3', 'W', 0.02, innerExceedsOuter),
  rule('W4', 'W', 0.02, ({ signals, agent }) => {
    return signals.page?.pluginCount === 0 && !agent.mobile && agent.engine !== 'unknown';
  }),
  rule('W5', 'W', 0.02, drawsInSoftware, { fact: 'no-graphics-hardware' }),
  rule('W6', 'W', 0.02, ({ signals }) => signals.time?.zone === 'UTC'),
  rule('W9', 'W', 0.02, ({ signals }) => {
    return signals.tells?.processType != null || /\bElectron\//.test(signals.page?.userAgent ?? '');
  }),
  rule('W8', 'W', 0.02, noWebGl, { fact: 'no-graphics-hardware' }),
  rule('N4', 'W', 0.02, ({ network }) => network.hosting === true),
  rule('N3', 'W', 0.1, languageDiffers),
];
