import { channel } from 'node:diagnostics_channel';
import { Unavailable } from '../lib/errors.ts';

/** Diagnostics channel with one message per batch. It costs nothing while nobody subscribes. */
export const BATCHES = 'gpd.batch';

export interface BatchBegun {
  readonly group: string;
  readonly size: number;
  /** Items that still wait. */
  readonly waiting: number;
}

const batches = channel(BATCHES);

/** The result of an item that failed alone; the rest of its batch succeeded. */
export class ItemFault {
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
  /** The name in metrics. */
  readonly name: string;
  /**
   * Runs one batch: a transaction, or one query per table. It returns results in the order of its items. If
   * it throws, nothing was written, and it is called again with fewer items.
   */
  readonly run: (items: readonly Item[]) => Promise<readonly (Result | ItemFault)[]>;
  readonly maxBatch: number;
  /** Waiting items; past it a caller is refused with {@link Unavailable}, so that memory stays flat. */
  readonly maxWaiting: number;
  /** Batches under way at once: 1 where a single writer makes more of them pointless. */
  readonly concurrency?: number;
  /**
   * All items of a batch share this key, and one batch per key is in flight. Without it all items are alike.
   */
  readonly keyOf?: (item: Item) => string;
}

/**
 * On PostgreSQL a batch belongs to one tenant: a distributed database then commits it on one shard, without
 * two phases. On SQLite all tenants share the commit of the one writer. Three batches of recorder, appender
 * and checks each still leave the pool a connection.
 */
export const oneTenant = <Item>(kind: 'sqlite' | 'postgres', keyOf: (item: Item) => string) =>
  kind === 'postgres' ? { keyOf, concurrency: 3 } : {};

/**
 * Runs a batch and answers its items. A batch that throws is retried in halves, until the failing item is
 * alone.
 * @param onAway called when the database cannot be reached
 */
async function answer<Item, Result>(
  run: GroupOptions<Item, Result>['run'],
  batch: readonly Waiting<Item, Result>[],
  onAway: (cause: Unavailable) => void,
): Promise<void> {
  try {
    const results = await run(batch.map((entry) => entry.item));
    batch.forEach((entry, i) => {
      const result = results[i] as Result | ItemFault;
      if (result instanceof ItemFault) entry.reject(result.reason);
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

/** The next batch: the oldest item whose key is not busy, and the items with the same key. */
function nextBatch<Item, Result>(
  waiting: readonly Waiting<Item, Result>[],
  { keyOf = () => '', maxBatch }: GroupOptions<Item, Result>,
  busy: ReadonlySet<string>,
) {
  const oldest = waiting.find(({ item }) => !busy.has(keyOf(item)));
  if (!oldest) return null;
  const key = keyOf(oldest.item);
  const batch = waiting.filter(({ item }) => keyOf(item) === key).slice(0, maxBatch);
  const batchItems = new Set(batch);
  return { batch, key, rest: waiting.filter((entry) => !batchItems.has(entry)) };
}

/**
 * While one batch is in flight the next one gathers. If the database cannot be reached, the waiting items are
 * refused with it; any other failure affects only its item. No timer: an idle server adds no delay, a loaded
 * one shares the fsync.
 */
export function createGroup<Item, Result>(options: GroupOptions<Item, Result>) {
  const concurrency = options.concurrency ?? 1;
  let waiting: Waiting<Item, Result>[] = [];
  let inFlight = 0;
  const busy = new Set<string>();
  let scheduled = false;
  const onIdle: (() => void)[] = [];
  const isIdle = (): boolean => inFlight === 0 && waiting.length === 0;

  /** Otherwise each further batch would wait for its own timeout. */
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
      const batchInfo: BatchBegun = { group: options.name, size: batch.length, waiting: waiting.length };
      if (batches.hasSubscribers) batches.publish(batchInfo);
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
