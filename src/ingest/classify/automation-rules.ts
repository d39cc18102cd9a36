import type { Facts, Rule } from './facts.ts';
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

export const AUTOMATION_RULES: readonly Rule[] = [
  {
    id: 'A1',
    kind: 'A',
    weight: 0.9,
    text: 'The browser says that a program drives it (the WebDriver flag is set).',
    fires: ({ signals }) => signals.page?.webdriver === true || signals.frame?.webdriver === true,
  },
  {
    id: 'A2',
    kind: 'A',
    weight: 0.9,
    text: 'The browser calls itself headless: it runs without a screen, as automation does.',
    fires: saysHeadless,
  },
  {
    id: 'A3',
    kind: 'A',
    weight: 0.8,
    text: 'The page contains objects that only automation tools leave behind.',
    fires: ({ signals }) => (signals.tells?.globals ?? []).some((name) => AUTOMATION_GLOBAL.test(name)),
  },
  {
    id: 'A4',
    kind: 'A',
    weight: 0.7,
    text: 'The browser brands have a form that real browsers of this version gave up years ago.',
    fires: staleGrease,
  },
  {
    id: 'A5',
    fact: 'worker-brands',
    kind: 'A',
    weight: 0.6,
    text: 'The page and its background worker disagree about the browser brands, as disguised browsers do.',
    fires: (facts) => workerWithoutBrands(facts) && !isStaged(facts),
    // The device mode of developer tools does this too.
    demote: (others) => (others.has('M2') ? 'W' : null),
  },
  {
    id: 'A7',
    fact: 'worker-brands',
    kind: 'A',
    weight: 0.6,
    text: 'Page and worker disagree about the browser brands, in a window that only a driver sets up like that.',
    fires: (facts) => workerWithoutBrands(facts) && isStaged(facts),
  },
  {
    id: 'A6',
    kind: 'A',
    weight: 0.6,
    text: 'A frame was ready before it was attached to the page, which scripted browsers cause.',
    fires: ({ signals }) => signals.frame?.srcdocPreattached === true,
    // Script-blocking extensions do this, and patch natives while they are at it.
    demote: (others) => (others.size === 1 && others.has('T8') ? 'T' : null),
  },
];
