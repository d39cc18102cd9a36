import { randomBytes } from 'node:crypto';
import { type DemoVisit, drivenBrowser, personBrowser } from '../../src/demo/visits.ts';

/** Complete reports of browsers (signals.md section 1) with matching headers; the demo uses the same. */

export type Headers = Readonly<Record<string, string>>;
type Group = Record<string, unknown>;
export type SampleSignals = Record<string, unknown> & {
  page: Group;
  worker: Group;
  frame: Group;
  screen: Group;
  media: Group;
  graphics: Group;
  engine: Group;
  time: Group;
  tells: Group;
  input: Group;
};

/** The request headers of that browser on a page of `origin`. */
export function browserHeaders(origin?: string): Headers {
  return {
    ...personBrowser('').headers,
    'sec-fetch-site': 'same-site',
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
    ...(origin === undefined ? {} : { origin }),
  };
}

/** Copies the signals, so that a test may change them. */
const copyOf = ({ signals }: DemoVisit): SampleSignals => structuredClone(signals) as SampleSignals;

/**
 * A person's Chrome on a Windows laptop.
 * @param device distinguishes machines; by default each call is a new one
 */
export const desktopChrome = (device = randomBytes(16).toString('hex')): SampleSignals =>
  copyOf(personBrowser(device));

/** That Chrome without a window, driven by a script. */
export const headlessChrome = (device = randomBytes(16).toString('hex')): SampleSignals =>
  copyOf(drivenBrowser(device));
