import { type Browser, gpu, rename } from './browsers.ts';

/** A change of one thing in a browser, on which a rule is shown to fire. */
export type Change = (browser: Browser) => void;

/** A case that a rule is shown to fire on: the rule, the case, a browser and what is changed of it. */
export type Shown = readonly [rule: string, name: string, make: () => Browser, change: Change];

type Group = Exclude<keyof Browser['signals'], number | symbol>;

/** Fields of a group of signals. */
export const setFields =
  (group: Group, values: Readonly<Record<string, unknown>>): Change =>
  ({ signals }) => {
    Object.assign(signals[group] as object, values);
  };

/** Groups as a whole; null is missing. */
export const groups =
  (values: Readonly<Record<string, unknown>>): Change =>
  ({ signals }) => {
    Object.assign(signals, values);
  };

export const uaData =
  (values: Readonly<Record<string, unknown>>): Change =>
  ({ signals }) => {
    Object.assign(signals.page['uaData'] as object, values);
  };

export const header =
  (name: string, value: string | undefined): Change =>
  ({ headers }) => {
    Object.assign(headers, { [name]: value });
  };

export const ja4 =
  (value: string): Change =>
  (browser) => {
    Object.assign(browser, { ja4: value });
  };

export const insecure: Change = (browser) => {
  Object.assign(browser, { https: false });
};

export const drawnBy =
  (renderer: string | null): Change =>
  (browser) => {
    gpu(browser, renderer);
  };

export const named =
  (userAgent: string, platform: string): Change =>
  (browser) => {
    rename(browser, { userAgent, platform });
  };

export const patched = (...names: readonly string[]): Change => setFields('tells', { patched: names });

export const all =
  (...changes: readonly Change[]): Change =>
  (browser) => {
    for (const change of changes) change(browser);
  };

export const nothing: Change = () => {};
