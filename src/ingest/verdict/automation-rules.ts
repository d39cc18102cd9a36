import type { Facts } from './facts.ts';
import {
  hasFired,
  isAndroidDesktopMode,
  isStaged,
  onlyWhere,
  type Rule,
  rule,
  workerWithoutBrands,
} from './rule.ts';

/**
 * Rules of kind A: only a program does this. Also the traces of a driver in a browser without other marks
 * (signals.md section 2b).
 */

/** Names that only drivers define. `phantom`, `emit` and `spawn` are left out: wallets and pages use them. */
const AUTOMATION_GLOBAL =
  /^(?:\$?cdc_|__pw|__playwright|__selenium|__webdriver|domAutomation|_?callPhantom$|__nightmare)/;

const HEADLESS = /HeadlessChrome|PhantomJS|SlimerJS|HappyDOM|jsdom/i;

type Brand = { readonly brand: string; readonly version: string };

function brandsOf(facts: Facts): readonly Brand[] {
  const uaData = facts.signals.page?.uaData;
  return [...(uaData?.brands ?? []), ...(uaData?.fullVersionList ?? [])];
}

function saysHeadless(facts: Facts): boolean {
  const { page, worker, frame } = facts.signals;
  const workerBrands = worker?.uaData?.brands ?? [];
  const texts = [
    facts.network.userAgent,
    facts.network.secChUa,
    page?.userAgent,
    page?.appVersion,
    worker?.userAgent,
    frame?.userAgent,
    ...[...brandsOf(facts), ...workerBrands].map((entry) => entry.brand),
  ];
  return texts.some((text) => text != null && HEADLESS.test(text));
}

/** The GREASE brand as Chrome 99 spelt it, which drivers still paste into later versions. */
const STALE_GREASE = /^\s?Not A;Brand$/;

function staleGrease(facts: Facts): boolean {
  if (facts.agent.browser !== 'chrome' || facts.agent.major < 110) return false;
  const inHeader = /"\s?Not A;Brand"/.test(facts.network.secChUa ?? '');
  return inHeader || brandsOf(facts).some((entry) => STALE_GREASE.test(entry.brand));
}

function saysWebDriver({ signals }: Facts): boolean {
  return signals.page?.webdriver === true || signals.frame?.webdriver === true;
}

const inBlink = onlyWhere(({ agent }) => agent.engine === 'blink');

/** A clock that counts whole milliseconds proves nothing. */
const FINE_CLOCK_MS = 1;

/** X11 stamps events by whole milliseconds, Windows by its fine clock; on Wayland Chromium stamps its own. */
function windowsOnGrid({ signals, agent }: Facts): boolean {
  if (agent.os !== 'windows' || signals.input?.offGrid !== false) return false;
  return (signals.time?.clockStepMs ?? FINE_CLOCK_MS) < FINE_CLOCK_MS;
}

const DESKTOPS = new Set(['windows', 'macos', 'linux']);

/**
 * Drivers turn a screen without its orientation, or the other way round. A phone's window may be smaller than
 * its screen.
 */
function orientationContradicts(facts: Facts): boolean {
  const { agent, signals } = facts;
  const { width, height, orientation, turns } = signals.screen ?? {};
  if (agent.mobile || !DESKTOPS.has(agent.os) || isAndroidDesktopMode(facts)) return false;
  if (turns === true) return true;
  if (width == null || height == null || width === height || !orientation) return false;
  return height > width ? orientation === 'landscape-primary' : orientation === 'portrait-primary';
}

/**
 * Pointer Events section 4.1: hardware without pressure reports 0.5. The agent leaves out presses without a
 * device.
 */
const isForceless = ({ signals }: Facts): boolean => signals.input?.forceless === true;

const setsPermissions = ({ signals: { tells } }: Facts): boolean =>
  (tells?.granted ?? 0) >= 2 && (tells?.barred ?? 0) >= 4;

const isActivated = ({ signals }: Facts): boolean => signals.tells?.activated === true;

export const AUTOMATION_RULES: readonly Rule[] = [
  rule('A1', 'A', 0.9, saysWebDriver),
  rule('A2', 'A', 0.9, saysHeadless),
  rule('A3', 'A', 0.8, ({ signals }) =>
    (signals.tells?.globals ?? []).some((name) => AUTOMATION_GLOBAL.test(name)),
  ),
  rule('A4', 'A', 0.7, staleGrease),
  rule('A5', 'A', 0.6, (facts) => workerWithoutBrands(facts) && !isStaged(facts), {
    fact: 'worker-brands',
    // The device mode of developer tools does this too.
    demote: (otherRules) => (hasFired(otherRules, 'M2') ? 'W' : null),
    withDebugger: 'harmless',
  }),
  rule('A7', 'A', 0.6, (facts) => workerWithoutBrands(facts) && isStaged(facts), { fact: 'worker-brands' }),
  rule('A6', 'A', 0.6, ({ signals }) => signals.frame?.srcdocPreattached === true, {
    // Script-blocking extensions do this too, and patch natives as well.
    demote: (otherRules) => (otherRules.length === 1 && hasFired(otherRules, 'T8') ? 'T' : null),
  }),
  rule('A8', 'A', 0.8, inBlink(isForceless)),
  rule('A9', 'A', 0.8, inBlink(setsPermissions)),
  rule('T14', 'T', 0.3, inBlink(windowsOnGrid), { withDebugger: 'usual', ofAnotherName: true }),
  // Firefox with resistFingerprinting always reports landscape, and iPads that call themselves a Mac do turn.
  rule('T15', 'T', 0.3, inBlink(orientationContradicts), { fact: 'screen-size', withDebugger: 'usual' }),
  rule('M12', 'M', 0.15, inBlink(isActivated)),
];
