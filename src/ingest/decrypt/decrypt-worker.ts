import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { chunksOf } from '../../lib/collections.ts';
import type { SealKeyChanges } from '../../tenants/directory.ts';
import { readEnvelope, type Unsealed, unseal } from '../open.ts';
import type { TenantLookup } from '../ports.ts';
import type { FromWorker, ToWorker } from './worker.ts';

/**
 * Opens bundles in a second thread if there is a second processor, else on the event loop. Measured on two
 * processors, with checks of consent during a flood of bundles (ADR 0097): by `webcrypto.subtle` in libuv's
 * pool an ingest takes 1.19 times the CPU, and the P99 of the event loop's delay is 1.6 times as high. On the
 * event loop the CPU is the same, and that delay twice as high.
 */

/** Null if the body is not a SealedBundle. */
type Answer = Unsealed | null;

export interface Decryptor {
  /** Not a promise if this thread opens the bundle. */
  readonly open: (body: Uint8Array) => Answer | Promise<Answer>;
  /** Bodies that were sent earlier are still opened with the earlier keys. */
  readonly setKeys: (changes: SealKeyChanges) => void;
  /** Parts that work more slowly than they should, in words; empty if all is well. */
  readonly degraded: () => readonly string[];
  readonly stop: () => Promise<void>;
}

export interface DecryptorDeps {
  readonly tenants: TenantLookup;
  /** The keys of all tenants, for a thread that starts. */
  readonly allKeys: () => SealKeyChanges;
  /**
   * Counts the use of a generation.
   * @returns false if it is no longer live, even if the thread does not know yet
   */
  readonly noteOpened: (kid: string, generation: number) => boolean;
  readonly onFault: (error: unknown) => void;
}

interface Waiting {
  readonly body: Uint8Array;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
}

/** The first answers of a crowd leave while the thread opens the rest. */
const MAX_BATCH = 32;
/**
 * No data of a bundle outlives its message, so little is enough: with 2 MB an ingest costs 4 % more CPU, with
 * 24 MB as much.
 */
const RESOURCES = { maxYoungGenerationSizeMb: 8 };
/**
 * Wait before the first restart. Each further restart of a thread that did not become ready waits twice as
 * long.
 */
const RESTART_MS = 1000;
const MOST_RESTART_MS = 60_000;

const AWAY: readonly string[] = ['the decrypt thread has ended: bundles are decrypted on the main thread'];

function noteUse(answer: Answer, { noteOpened }: DecryptorDeps): Answer {
  if (answer === null || answer.generation === null || noteOpened(answer.kid, answer.generation))
    return answer;
  return { ...answer, generation: null, plaintext: null };
}

function openHere(body: Uint8Array, deps: DecryptorDeps): Answer {
  const bundle = readEnvelope(body);
  return bundle && noteUse(unseal(bundle, deps.tenants(bundle.kid)), deps);
}

const createLocalDecryptor = (deps: DecryptorDeps): Decryptor => ({
  open: (body) => openHere(body, deps),
  setKeys: () => {},
  degraded: () => [],
  stop: async () => {},
});

/**
 * Starts a second thread, and starts it again when it ends. While it is not ready, this thread opens the
 * bundles, also those that an ended thread has not answered.
 * @param entry the built `worker.js`
 */
function startDecryptor(entry: URL, deps: DecryptorDeps): Decryptor {
  let [isReady, hasEnded, stopping, restartMs] = [false, false, false, RESTART_MS];
  let restart: NodeJS.Timeout | undefined;
  const waiting: Waiting[] = [];
  const underWay: (readonly Waiting[])[] = [];
  const tell = (message: ToWorker): void => worker.postMessage(message);

  function startThread(): Worker {
    const thread = new Worker(entry, { name: 'gpd-decrypt', env: {}, resourceLimits: RESOURCES });
    // This comes after the listeners, because each of them would keep the process alive again.
    thread.on('message', take).on('error', deps.onFault).on('exit', end).unref();
    thread.postMessage({ keys: deps.allKeys() } satisfies ToWorker);
    return thread;
  }

  function send(): void {
    for (const batch of chunksOf(waiting.splice(0), MAX_BATCH)) {
      underWay.push(batch);
      // Copied: a message takes along the whole buffer behind each view.
      tell({ bodies: batch.map(({ body }) => new Uint8Array(body)) });
    }
  }

  function take(answers: FromWorker): void {
    [isReady, hasEnded, restartMs] = [true, false, RESTART_MS];
    for (const [i, { resolve }] of (underWay.shift() ?? []).entries())
      resolve(noteUse(answers[i] ?? null, deps));
  }

  function end(code: number): void {
    [isReady, hasEnded] = [false, true];
    // Each item has its own promise, so that an item that throws only fails its caller.
    for (const { body, resolve } of [...underWay.splice(0).flat(), ...waiting.splice(0)])
      resolve(new Promise((answer) => answer(openHere(body, deps))));
    if (stopping) return;
    deps.onFault(new Error(`the thread that opens bundles has ended with ${code}`));
    restart = setTimeout(() => {
      worker = startThread();
    }, restartMs).unref();
    restartMs = Math.min(2 * restartMs, MOST_RESTART_MS);
  }

  let worker = startThread();
  return {
    open(body) {
      if (!isReady) return openHere(body, deps);
      return new Promise((resolve) => {
        // Bundles that arrived with one poll of the sockets are gathered in one turn of the event loop.
        if (waiting.push({ body, resolve }) === 1) setImmediate(send);
      });
    },
    setKeys: (keys) => tell({ keys }),
    degraded: () => (hasEnded ? AWAY : []),
    async stop() {
      stopping = true;
      clearTimeout(restart);
      await worker.terminate();
    },
  };
}

/** @param entry the built `worker.js`; null to open everything on this thread */
export function chooseDecryptor(
  entry: URL | null,
  deps: DecryptorDeps,
  processors: number = availableParallelism(),
): Decryptor {
  return entry !== null && processors > 1 ? startDecryptor(entry, deps) : createLocalDecryptor(deps);
}
