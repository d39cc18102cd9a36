import { channel } from 'node:diagnostics_channel';
import { Unavailable } from '../lib/errors.ts';

/** Told of every batch that begins: who listens measures, and nobody pays where nobody listens. */
export const BATCHES = 'gpd.batch';

export interface BatchBegun {
  readonly group: string;
  readonly size: number;
  /** What else waits. */
  readonly waiting: number;
}

const batches = channel(BATCHES);

/** The answer to an item that failed alone: the others of its batch have theirs. */
export class Fault {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupOptions<Item, Result> {
  /** In metrics. */
  readonly name: string;
  /**
   * One batch: a transaction, or one query a table. Answers in the order of its items. What throws has written nothing, and
   * is called again with fewer items.
   */
  readonly run: (items: readonly Item[]) => Promise<readonly (Result | Fault)[]>;
  readonly maxBatch: number;
  /** Waiting items; past it a caller is refused with {@link Unavailable}, so that memory stays flat. */
  readonly maxWaiting: number;
  /** Batches under way at once: 1 where a single writer makes more of them pointless. */
  readonly concurrency?: number;
  /** What a batch has one of, and what has one batch under way; all items are alike where it is left out. */
  readonly keyOf?: (item: Item) => string;
}

/**
 * On PostgreSQL a batch is of one tenant: a distributed one takes it to one shard, without a two-phase commit. On SQLite tenants
 * share the commit of the one writer. Recorder, appender and checks leave the pool a connection together.
 */
export const oneTenant = <Item>(kind: 'sqlite' | 'postgres', keyOf: (item: Item) => string) =>
  kind === 'postgres' ? { keyOf, concurrency: 3 } : {};

/**
 * Runs a batch and answers its items. One that throws is retried in halves, until the failing item is alone.
 * @param onAway told when the database is away
 */
async function answer<Item, Result>(
  run: GroupOptions<Item, Result>['run'],
  batch: readonly Waiting<Item, Result>[],
  onAway: (cause: Unavailable) => void,
): Promise<void> {
  try {
    const results = await run(batch.map((entry) => entry.item));
    batch.forEach((entry, i) => {
      const result = results[i] as Result | Fault;
      if (result instanceof Fault) entry.reject(result.reason);
      else entry.resolve(result);
    });
  } catch (error) {
    if (batch.length > 1 && !(error instanceof Unavailable)) {
      const half = batch.length >> 1;
      await answer(run, batch.slice(0, half), onAway);
      await answer(run, batch.slice(half), onAway);
      return;
    }
    for (const entry of batch) entry.reject(error);
    if (error instanceof Unavailable) onAway(error);
  }
}

/** What one transaction takes: the oldest item that may begin, and those that wait for the same key. */
function nextBatch<Item, Result>(
  waiting: readonly Waiting<Item, Result>[],
  { keyOf = () => '', maxBatch }: GroupOptions<Item, Result>,
  busy: ReadonlySet<string>,
) {
  const oldest = waiting.find(({ item }) => !busy.has(keyOf(item)));
  if (!oldest) return null;
  const key = keyOf(oldest.item);
  const batch = waiting.filter(({ item }) => keyOf(item) === key).slice(0, maxBatch);
  const taken = new Set(batch);
  return { batch, key, rest: waiting.filter((entry) => !taken.has(entry)) };
}

/**
 * While one batch is in flight the next one gathers, and shares its refusal when the database is away; any other failure is
 * nobody's but the item's that has it. There is no timer: an idle server adds no delay, a loaded one shares the fsync.
 */
export function makeGroup<Item, Result>(options: GroupOptions<Item, Result>) {
  const concurrency = options.concurrency ?? 1;
  let waiting: Waiting<Item, Result>[] = [];
  let inFlight = 0;
  const busy = new Set<string>();
  let scheduled = false;
  const onIdle: (() => void)[] = [];
  const isIdle = (): boolean => inFlight === 0 && waiting.length === 0;

  /** A database that is away would let each further batch wait for its own timeout. */
  function refuseWaiting(cause: Unavailable): void {
    for (const entry of waiting.splice(0))
      entry.reject(new Unavailable('the database is away', 1, { cause }));
  }

  function pump(): void {
    while (inFlight < concurrency) {
      const next = nextBatch(waiting, options, busy);
      if (!next) break;
      waiting = next.rest;
      const { batch, key } = next;
      inFlight += 1;
      const begun: BatchBegun = { group: options.name, size: batch.length, waiting: waiting.length };
      if (batches.hasSubscribers) batches.publish(begun);
      if (options.keyOf) busy.add(key);
      void answer(options.run, batch, refuseWaiting).then(() => {
        busy.delete(key);
        inFlight -= 1;
        pump();
      });
    }
    if (isIdle()) for (const resolve of onIdle.splice(0)) resolve();
  }

  // One turn of the event loop gathers what arrived with the same poll of the sockets.
  function schedule(): void {
    if (scheduled || inFlight >= concurrency) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      pump();
    });
  }

  return {
    submit(item: Item): Promise<Result> {
      if (waiting.length >= options.maxWaiting)
        return Promise.reject(new Unavailable('too much is waiting', 1));
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        schedule();
      });
    },
    /** Resolves when nothing waits and nothing is in flight. */
    idle: (): Promise<void> =>
      isIdle() ? Promise.resolve() : new Promise((resolve) => void onIdle.push(resolve)),
  };
}
