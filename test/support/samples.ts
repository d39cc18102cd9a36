import { randomBytes } from 'node:crypto';
import { type DemoVisit, drivenBrowser, personBrowser } from '../../src/demo/visits.ts';

/** What browsers report (signals.md section 1), complete and consistent with the headers beside it: those of the demo. */

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

/** Request headers of the same browser on a page of `origin`. */
export function browserHeaders(origin?: string): Headers {
  return {
    ...personBrowser('').headers,
    'sec-fetch-site': 'same-site',
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
    ...(origin === undefined ? {} : { origin }),
  };
}

/** A copy, which a test may change. */
const copyOf = ({ signals }: DemoVisit): SampleSignals => structuredClone(signals) as SampleSignals;

/** A person's Chrome on a Windows laptop. `device` tells one machine from another; by default each call is a new one. */
export const desktopChrome = (device = randomBytes(16).toString('hex')): SampleSignals =>
  copyOf(personBrowser(device));

/** The same machine driven by a script, without a window. */
export const headlessChrome = (device = randomBytes(16).toString('hex')): SampleSignals =>
  copyOf(drivenBrowser(device));
