import { asUnavailable, NO_CONNECTION } from './availability.ts';

/** Connections that are opened when needed, and callers that wait for one in the order in which they came. */
export interface Pool<Connection> {
  /** @throws {Unavailable} when no connection gets free in time @throws {Error} when none can be opened */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
  /** Waits for the connections in use. */
  close(): Promise<void>;
}

interface Waiting<Connection> {
  readonly resolve: (connection: Connection) => void;
  readonly timer: NodeJS.Timeout;
}

/** A pool for SQLite, whose connections never go away by themselves. */
export function createPool<Connection extends { close(): Promise<void> }>(
  open: () => Promise<Connection>,
  { max, waitMs, place }: { readonly max: number; readonly waitMs: number; readonly place: string },
): Pool<Connection> {
  const free: Connection[] = [];
  const waiting: Waiting<Connection>[] = [];
  let opened = 0;
  let onLastBack: (() => void) | null = null;

  function wait(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(entry), 1);
        reject(asUnavailable(new Error(NO_CONNECTION), place));
      }, waitMs);
      const entry = { resolve, timer };
      waiting.push(entry);
    });
  }

  async function take(): Promise<Connection> {
    const connection = free.pop();
    if (connection !== undefined) return connection;
    if (opened >= max) return wait();
    opened += 1;
    try {
      return await open();
    } catch (error) {
      opened -= 1;
      throw error;
    }
  }

  function giveBack(connection: Connection): void {
    const next = waiting.shift();
    if (next === undefined) {
      free.push(connection);
      if (free.length === opened) onLastBack?.();
      return;
    }
    clearTimeout(next.timer);
    next.resolve(connection);
  }

  return {
    async use(work) {
      const connection = await take();
      try {
        return await work(connection);
      } finally {
        giveBack(connection);
      }
    },
    async close() {
      if (free.length < opened) {
        await new Promise<void>((resolve) => {
          onLastBack = resolve;
        });
      }
      for (const connection of free.splice(0)) await connection.close();
    },
  };
}
