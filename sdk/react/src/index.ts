'use client';

import type { BannerOptions, ConsentSnapshot, GpdConsent } from '@gpd/browser/banner';
import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
} from 'react';
import { type ConsentStore, createStore, type ServerState } from './store.js';

/** The public names of the package. */

export type { ServerState } from './store.js';

export interface ConsentProviderProps {
  /** The publishable key, the address of gpd, and how the banner looks and stores. */
  readonly options: BannerOptions;
  /** What your server read of the cookie `gpd_consent`. Without it the server renders nothing that needs consent. */
  readonly serverState?: ServerState | null | undefined;
  readonly children?: ReactNode;
}

type Acts = Pick<GpdConsent, 'open' | 'withdraw' | 'receipt' | 'join'>;

/** The state of the banner, with its acts: settings, withdrawal, the receipt for `identify`, and the join after a login. */
export interface Consent extends ConsentSnapshot, Acts {
  /** True only if the person has granted this purpose. */
  readonly allows: (purpose: string) => boolean;
}

interface Provided {
  readonly store: ConsentStore;
  readonly server: string;
}

const Context = createContext<Provided | null>(null);

function useProvided(user: string): Provided {
  const provided = useContext(Context);
  if (!provided) throw new Error(`${user} must be inside <ConsentProvider>`);
  return provided;
}

/** Starts the banner in the browser, once per page. Later changes of `options` and `serverState` have no effect. */
export function ConsentProvider({ options, serverState, children }: ConsentProviderProps): ReactElement {
  const [provided] = useState(() => ({
    store: createStore(options, serverState),
    server: options.server.replace(/\/+$/, ''),
  }));
  useEffect(() => provided.store.start(), [provided]);
  return createElement(Context.Provider, { value: provided }, children);
}

/** Returns what the person has chosen, and renders again when that changes. */
export function useConsent(): Consent {
  const { store } = useProvided('useConsent');
  const state = useSyncExternalStore(store.subscribe, store.current, store.initial);
  return useMemo(
    (): Consent => ({
      ...state,
      allows: (purpose: string) => state.granted.includes(purpose),
      open: () => store.banner().open(),
      withdraw: (purposes) => store.banner().withdraw(purposes),
      receipt: () => store.banner().receipt(),
      join: (session) => store.banner().join(session),
    }),
    [state, store],
  );
}

export interface GateProps {
  /** The purpose that has to be granted, or several that all have to be. */
  readonly purpose: string | readonly string[];
  readonly fallback?: ReactNode;
  readonly children?: ReactNode;
}

/** Renders its children only while the purpose is granted. */
export function Gate({ purpose, fallback = null, children }: GateProps): ReactNode {
  const { allows } = useConsent();
  const purposes = typeof purpose === 'string' ? [purpose] : purpose;
  return purposes.length > 0 && purposes.every(allows) ? children : fallback;
}

export interface MyDataProps {
  /** The tenant. */
  readonly kid: string;
}

/** The page about a person's data: gpd's script fills the element after React has taken it over. */
export function MyData({ kid }: MyDataProps): ReactElement {
  const { server } = useProvided('MyData');
  useEffect(() => {
    const src = `${server}/v1/my-data.js`;
    if ([...document.scripts].some((script) => script.src === src)) return;
    const script = document.createElement('script');
    script.type = 'module';
    script.src = src;
    document.head.append(script);
  }, [server]);
  return createElement('div', { 'data-gpd-my-data': '', 'data-kid': kid });
}
