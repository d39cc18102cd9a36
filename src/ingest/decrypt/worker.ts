import { type MessagePort, parentPort } from 'node:worker_threads';
import { createOpener, createSymmetricOpener } from '../../seal/open.ts';
import { type Openers, readEnvelope, unseal } from '../open.ts';
import { type FromWorker, type KeyMaterial, type Note, pack, type ToWorker, unpack } from './messages.ts';

/** The thread that opens bundles: it holds keys and nothing else. */

interface Ring extends Openers {
  /** Key generation that decrypted the last bundle. */
  readonly lastOpenedBy: () => number | null;
}

function createRing({ generations, symmetric }: KeyMaterial): Ring {
  let lastOpenedBy: number | null = null;
  return {
    openers: generations.map(({ generation, privateKey }) => {
      const open = createOpener(privateKey);
      return (bundle) => {
        const plaintext = open(bundle);
        if (plaintext) lastOpenedBy = generation;
        return plaintext;
      };
    }),
    symmetricOpener: symmetric && createSymmetricOpener(symmetric),
    lastOpenedBy: () => lastOpenedBy,
  };
}

function serve(port: MessagePort): void {
  const rings = new Map<string, Ring>();
  const tell = (message: FromWorker, transfer: ArrayBuffer[] = []): void =>
    port.postMessage(message, transfer);

  function openAll(bodies: readonly Buffer[]): FromWorker {
    const plaintexts: Uint8Array[] = [];
    const notes = bodies.map((body): Note | null => {
      const bundle = readEnvelope(body);
      if (!bundle) return null;
      const ring = rings.get(bundle.kid);
      const { kid, symmetric, plaintext } = unseal(bundle, ring);
      if (plaintext) plaintexts.push(plaintext);
      const generation = plaintext && !symmetric ? (ring?.lastOpenedBy() ?? null) : null;
      return { kid, symmetric, generation, opened: plaintext !== null };
    });
    return { kind: 'opened', notes, plaintexts: pack(plaintexts) };
  }

  port.on('message', (message: ToWorker) => {
    if (message.kind === 'open') {
      const answer = openAll(unpack(message.bodies));
      tell(answer, answer.kind === 'opened' ? [answer.plaintexts.bytes.buffer] : []);
      return;
    }
    for (const [kid, keys] of message.changes) {
      if (keys) rings.set(kid, createRing(keys));
      else rings.delete(kid);
    }
  });
  tell({ kind: 'ready' });
}

if (parentPort) serve(parentPort);
