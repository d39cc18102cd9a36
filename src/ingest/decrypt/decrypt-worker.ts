import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { readEnvelope, type Unsealed, unseal } from '../open.ts';
import type { TenantLookup } from '../ports.ts';
import {
  type FromWorker,
  type KeyChanges,
  type KeyMaterial,
  type Note,
  pack,
  type ToWorker,
  unpack,
} from './messages.ts';

/** Opens bundles in a second thread if there is a second processor, else on the event loop. */

/** Null if the body is not a SealedBundle. */
type Answer = Unsealed | null;

export interface Decryptor {
  /** Not a promise if this thread opens the bundle. */
  readonly open: (body: Uint8Array) => Answer | Promise<Answer>;
  /** Bodies that were sent earlier are still opened with the earlier keys. */
  readonly setKeys: (changes: KeyChanges) => void;
  /** Parts that work more slowly than they should, in words; empty if all is well. */
  readonly degraded: () => readonly string[];
  readonly stop: () => Promise<void>;
}

export interface DecryptorDeps {
  readonly tenants: TenantLookup;
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

/**
 * Small messages keep the thread's turns short. A second message is under way while the thread works on the
 * first.
 */
const MAX_BATCH = 32;
const MAX_BATCHES_UNDER_WAY = 2;
/**
 * No data of a bundle outlives its message, so little is enough: with 2 MB an ingest costs 4 % more CPU, with
 * 24 MB as much.
 */
const RESOURCES = { maxYoungGenerationSizeMb: 8 };

function openHere(body: Uint8Array, tenants: TenantLookup): Answer {
  const bundle = readEnvelope(body);
  return bundle && unseal(bundle, tenants(bundle.kid));
}

function createLocalDecryptor({ tenants }: DecryptorDeps): Decryptor {
  const nothing = () => {};
  return {
    open: (body) => openHere(body, tenants),
    setKeys: nothing,
    degraded: () => [],
    stop: async () => {},
  };
}

function toAnswer(note: Note | null, plaintext: Buffer | null, deps: DecryptorDeps): Answer {
  if (!note) return null;
  const { kid, symmetric, generation } = note;
  const live = generation === null || deps.noteOpened(kid, generation);
  return { kid, symmetric, plaintext: live ? plaintext : null };
}

/** Each item has its own promise, so that an item that throws only fails its caller. */
function openAllHere(bundles: readonly Waiting[], tenants: TenantLookup): void {
  for (const { body, resolve } of bundles) resolve(new Promise((opened) => opened(openHere(body, tenants))));
}

function answerBatch(
  batch: readonly Waiting[],
  { notes, plaintexts }: Extract<FromWorker, { kind: 'opened' }>,
  deps: DecryptorDeps,
): void {
  const opened = unpack(plaintexts).values();
  for (const [i, { resolve }] of batch.entries()) {
    const note = notes[i] ?? null;
    resolve(toAnswer(note, note?.opened ? (opened.next().value ?? null) : null, deps));
  }
}

interface Listeners {
  readonly message: (message: FromWorker) => void;
  readonly error: (error: unknown) => void;
  readonly exit: (code: number) => void;
}

function openThread(entry: URL, keys: KeyChanges, listeners: Listeners): Worker {
  const thread = new Worker(entry, { name: 'gpd-decrypt', env: {}, resourceLimits: RESOURCES });
  for (const [event, listener] of Object.entries(listeners)) thread.on(event, listener);
  // This comes after the listeners, because each of them would keep the process alive again.
  thread.unref();
  const firstMessage: ToWorker = { kind: 'keys', changes: keys };
  thread.postMessage(firstMessage);
  return thread;
}

function keepChanges(keys: Map<string, KeyMaterial>, changes: KeyChanges): void {
  for (const [kid, material] of changes) {
    if (material) keys.set(kid, material);
    else keys.delete(kid);
  }
}

/**
 * Wait before the first restart. Each further restart of a thread that did not become ready waits twice as
 * long.
 */
const RESTART_MS = 1000;
const MOST_RESTART_MS = 60_000;

const AWAY: readonly string[] = ['the decrypt thread has ended: bundles are decrypted on the main thread'];

/**
 * Starts a second thread, and starts it again when it ends. While it is not ready, this thread opens the
 * bundles, also those that an ended thread has not answered.
 * @param entry the built `worker.js`
 */
function startDecryptor(entry: URL, deps: DecryptorDeps): Decryptor {
  const keys = new Map<string, KeyMaterial>();
  let [isReady, hasEnded, stopping, restartMs] = [false, false, false, RESTART_MS];
  let restart: NodeJS.Timeout | undefined;
  const waiting: Waiting[] = [];
  const underWay: (readonly Waiting[])[] = [];

  const startThread = () => openThread(entry, keys, { message: take, error: deps.onFault, exit: end });
  const tell = (message: ToWorker, transfer: ArrayBuffer[] = []) => worker.postMessage(message, transfer);

  function pump(): void {
    while (isReady && waiting.length > 0 && underWay.length < MAX_BATCHES_UNDER_WAY) {
      const batch = waiting.splice(0, MAX_BATCH);
      underWay.push(batch);
      const bodies = pack(batch.map(({ body }) => body));
      tell({ kind: 'open', bodies }, [bodies.bytes.buffer]);
    }
  }

  function take(message: FromWorker): void {
    if (message.kind === 'ready') {
      [isReady, hasEnded, restartMs] = [true, false, RESTART_MS];
      return;
    }
    answerBatch(underWay.shift() ?? [], message, deps);
    pump();
  }

  function end(code: number): void {
    [isReady, hasEnded] = [false, true];
    openAllHere([...underWay.splice(0).flat(), ...waiting.splice(0)], deps.tenants);
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
      if (!isReady) return openHere(body, deps.tenants);
      return new Promise((resolve) => {
        // Bundles that arrived with one poll of the sockets are gathered in one turn of the event loop.
        if (waiting.push({ body, resolve }) === 1) setImmediate(pump);
      });
    },
    setKeys(changes) {
      keepChanges(keys, changes);
      tell({ kind: 'keys', changes });
    },
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
