import { observeInput as observe } from './collect/input.ts';
import { collectFrom, identifyFrom, updateFrom } from './identify.ts';
import type {
  CollectedSignals,
  ConsentReceipt,
  IdentifyOptions,
  IdentifyResult,
  UpdateOptions,
} from './types.ts';

/**
 * The agent for bundlers (`@gpd/browser`): nothing runs on import, and a server that renders a page gets an
 * answer. Without `endpoint` gpd is expected at the origin of the page.
 */

const isInPage = (): boolean => typeof document !== 'undefined';

export const identify = (options: IdentifyOptions & { readonly endpoint: string }): Promise<IdentifyResult> =>
  identifyFrom(null, options);

export const update = (options?: UpdateOptions): Promise<IdentifyResult> => updateFrom(null, options);

export const collect = async (
  consent: ConsentReceipt | null,
  workerUrl?: string | null,
): Promise<CollectedSignals | null> => (isInPage() ? collectFrom(null, consent, workerUrl) : null);

export const observeInput = (consent: ConsentReceipt | null): (() => void) | null =>
  isInPage() ? observe(consent) : null;
