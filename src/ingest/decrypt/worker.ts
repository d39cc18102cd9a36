import { type MessagePort, parentPort } from 'node:worker_threads';
import { createOpener, createSymmetricOpener } from '../../seal/open.ts';
import type { SealKeyChanges } from '../../tenants/directory.ts';
import type { SealKeys } from '../../tenants/tenant.ts';
import { type Openers, readEnvelope, type Unsealed, unseal } from '../open.ts';

/** The thread that opens bundles: it holds keys and nothing else. */

export type ToWorker = { readonly keys: SealKeyChanges } | { readonly bodies: readonly Uint8Array[] };
/**
 * An answer for each body, in their order; null: it is no SealedBundle. The first message is empty: the
 * thread is ready.
 */
export type FromWorker = readonly (Unsealed | null)[];

const createOpeners = ({ generations, symmetric }: SealKeys): Openers => ({
  openers: generations.map(({ generation, privateKey }) => ({ generation, open: createOpener(privateKey) })),
  symmetricOpener: symmetric && createSymmetricOpener(symmetric),
});

function serve(port: MessagePort): void {
  const tenants = new Map<string, Openers>();
  const tell = (answers: FromWorker): void => port.postMessage(answers);

  port.on('message', (message: ToWorker) => {
    if ('bodies' in message) {
      const bundles = message.bodies.map(readEnvelope);
      tell(bundles.map((bundle) => bundle && unseal(bundle, tenants.get(bundle.kid))));
      return;
    }
    for (const [kid, keys] of message.keys) {
      if (keys) tenants.set(kid, createOpeners(keys));
      else tenants.delete(kid);
    }
  });
  tell([]);
}

if (parentPort) serve(parentPort);
