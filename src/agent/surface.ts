import { collectSignals } from './collect/collect.ts';
import { observeInput } from './collect/input.ts';
import { browserGpc, isRefused, passConsentGate } from './consent-gate.ts';
import { identifyFrom, updateFrom } from './identify.ts';
import { makePlaintext, sealBundle } from './seal.ts';
import type { ConsentReceipt, IdentifyOptions, UpdateOptions } from './types.ts';
import { workerUrlOf } from './urls.ts';

/** The API of the agent for a page; agent.d.ts documents it. */
export type Surface = ReturnType<typeof createSurface>;

/** @param scriptUrl where the agent was loaded from: the default server, and where its worker file lies */
export function createSurface(scriptUrl: string | null) {
  return Object.freeze({
    identify: (options: IdentifyOptions) => identifyFrom(scriptUrl, options),
    update: (options?: UpdateOptions) => updateFrom(scriptUrl, options),
    collect: async (consent: ConsentReceipt | null, workerUrl?: string | null) =>
      isRefused(passConsentGate(consent, browserGpc()))
        ? null
        : collectSignals(workerUrlOf(workerUrl, scriptUrl)),
    observeInput,
    makePlaintext,
    sealBundle,
  });
}
