import { type BannerOptions, type ConsentSnapshot, type GpdConsent, startBanner } from '@gpd/browser/banner';

/** The state of the banner as React reads it: one object until it changes, and on a server that of the cookie. */

/** What the server read of the cookie: the answer of `readState` or `currentState` of `@gpd/consent`. */
export interface ServerState {
  readonly purposes: readonly string[];
}

export interface ConsentStore {
  /** Starts the banner, once per page. @returns a function that stops listening to it */
  readonly start: () => () => void;
  readonly subscribe: (onChange: () => void) => () => void;
  readonly current: () => ConsentSnapshot;
  /** The state of the first render, the same on the server and in the browser. */
  readonly initial: () => ConsentSnapshot;
  /** The banner, which the first call in a browser starts. On a server it asks nobody and grants nothing. */
  readonly banner: () => GpdConsent;
}

export function createStore(
  options: BannerOptions,
  serverState: ServerState | null | undefined,
): ConsentStore {
  const initial: ConsentSnapshot = {
    phase: 'loading',
    problem: null,
    gpc: false,
    granted: serverState?.purposes ?? [],
    purposes: [],
    principalId: null,
  };
  const listeners = new Set<() => void>();
  const banner = (): GpdConsent => startBanner(options);
  let current = initial;
  function update(): void {
    const state = banner().state();
    // While the banner loads, what the server has rendered stays.
    if (state.phase === 'loading') return;
    current = state;
    for (const listener of [...listeners]) listener();
  }
  return {
    start() {
      const stops = (['ready', 'change'] as const).map((name) => banner().on(name, update));
      return () => {
        for (const stop of stops) stop();
      };
    },
    subscribe(onChange) {
      listeners.add(onChange);
      return () => void listeners.delete(onChange);
    },
    current: () => current,
    initial: () => initial,
    banner,
  };
}
