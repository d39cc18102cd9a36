import type { Facts, Rule } from './facts.ts';
import { rule } from './rule.ts';
import { isStaged, workerWithoutBrands } from './tools-window.ts';

/** Names that only drivers leave. `phantom`, `emit` and `spawn` are not among them: wallets and pages use those. */
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
    demote: (others) => (others.has('M2') ? 'W' : null),
  }),
  rule('A7', 'A', 0.6, (facts) => workerWithoutBrands(facts) && isStaged(facts), { fact: 'worker-brands' }),
  rule('A6', 'A', 0.6, ({ signals }) => signals.frame?.srcdocPreattached === true, {
    // Script-blocking extensions do this, and patch natives while they are at it.
    demote: (others) => (others.size === 1 && others.has('T8') ? 'T' : null),
  }),
];
