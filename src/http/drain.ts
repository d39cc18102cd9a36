import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';

/** A kept connection that says nothing for so long while the server drains is closed; an answer closes its own. */
const LINGER_MS = 1000;

/**
 * Takes nobody new and waits until every connection is closed, at the deadline by force.
 * Not http's own close(), which ends idle connections at once: a balancer may be sending on one of them.
 */
export async function drainConnections(server: Server, deadlineMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
  // After what has arrived was read: a busy loop may be late with it.
  const silent = setTimeout(() => setImmediate(() => server.closeIdleConnections()), LINGER_MS);
  await new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
  clearTimeout(deadline);
  clearTimeout(silent);
}
