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

/** Null: the body is no SealedBundle. */
type Answer = Unsealed | null;

export interface Decryptor {
  /** At once where this thread opens it. */
  readonly open: (body: Uint8Array) => Answer | Promise<Answer>;
  /** Bodies that were sent before are opened with the keys of before. */
  readonly setKeys: (changes: KeyChanges) => void;
  /** Parts that work only slower, in words; empty when all is well. */
  readonly degraded: () => readonly string[];
  readonly stop: () => Promise<void>;
}

export interface DecryptorDeps {
  readonly tenants: TenantLookup;
  /** Counts the use of a generation. False: it is no longer live, whatever the thread knows. */
  readonly noteOpened: (kid: string, generation: number) => boolean;
  readonly onFault: (error: unknown) => void;
}

interface Waiting {
  readonly body: Uint8Array;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
}

/** A message is as small as keeps the thread's turn short, and one more is under way while it works on the first. */
const MAX_BATCH = 32;
const MAX_BATCHES_UNDER_WAY = 2;
/** Nothing of a bundle outlives its message. With 2 MB an ingest costs 4 % more CPU, with 24 MB it costs no less. */
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

/** One promise each: an item that throws fails its own caller alone. */
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
  // After the listeners: each of them would hold the process again.
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

/** The first restart comes after this; each further one of a thread that did not become ready waits twice as long. */
const RESTART_MS = 1000;
const MOST_RESTART_MS = 60_000;

const AWAY: readonly string[] = ['the decrypt thread has ended: bundles are decrypted on the main thread'];

/**
 * One more thread. While it is not ready bundles are opened here: a bundle that it was given is never lost with it. A thread that ends is
 * started again.
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
        // One turn of the event loop gathers what arrived with the same poll of the sockets.
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

/** @param entry the built `worker.js`; null: everything is done on this thread */
export function chooseDecryptor(
  entry: URL | null,
  deps: DecryptorDeps,
  processors: number = availableParallelism(),
): Decryptor {
  return entry !== null && processors > 1 ? startDecryptor(entry, deps) : createLocalDecryptor(deps);
}
