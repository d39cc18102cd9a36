import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as NetServer } from 'node:net';

/**
 * Closing on bytes that nobody read resets the connection, and the peer may lose the answer it was sent. So our half is
 * closed, and what still comes is thrown away for a short while: no more than a polite peer needs to notice.
 */

export const LINGER_MS = 1000;
const MAX_BYTES = 16 * 1024 * 1024;
/** More at once are closed as they are: reading for nothing has a bound. */
const MAX_AT_ONCE = 100;

/**
 * For the listener of new connections.
 * @param hasUnread the newest request of the connection was answered before all of it was read
 */
export function makeLinger(hasUnread: (socket: Socket) => boolean): (socket: Socket) => void {
  let lingering = 0;

  function linger(socket: Socket): void {
    lingering += 1;
    let left = MAX_BYTES;
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => {
      lingering -= 1;
      clearTimeout(timer);
    });
    socket.once('end', () => socket.destroy());
    socket.end();
    // node:http reads the handle past the stream, and may have stopped: its own listener of `resume` starts it again, before
    // `data` takes it from the parser. Which hears nothing of what follows: a request behind is not one.
    socket.pause();
    socket.once('resume', () => {
      socket.removeAllListeners('data');
      socket.on('data', (chunk) => {
        left -= chunk.length;
        if (left < 0) socket.destroy();
      });
    });
    socket.resume();
  }

  return (socket) => {
    const destroySoon = socket.destroySoon.bind(socket);
    // What node:http calls when the last answer of a connection is out.
    socket.destroySoon = () => {
      if (!socket.destroyed && lingering < MAX_AT_ONCE && hasUnread(socket)) linger(socket);
      else destroySoon();
    };
  };
}

/** A kept connection that says nothing for so long while the server drains is closed; an answer closes its own. */
const SILENT_MS = 1000;

/** Node's default for how many connections may wait to be accepted. */
const BACKLOG = 511;

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Closing a listener resets the connections that the kernel has made and nobody has accepted; a turn of the loop accepts one. */
async function acceptWaiting(server: Server): Promise<void> {
  let accepted = true;
  const note = (): void => {
    accepted = true;
  };
  server.on('connection', note);
  for (let turns = 0; accepted && turns < BACKLOG; turns += 1) {
    accepted = false;
    await turnOfTheLoop();
    await turnOfTheLoop();
  }
  server.off('connection', note);
}

/**
 * Takes nobody new and waits until every connection is closed, at the deadline by force.
 * Not http's own close(), which ends idle connections at once: a balancer may be sending on one of them.
 */
export async function drainConnections(server: Server, deadlineMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
  await acceptWaiting(server);
  // After what has arrived was read: a busy loop may be late with it.
  const silent = setTimeout(() => setImmediate(() => server.closeIdleConnections()), SILENT_MS);
  await new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
  clearTimeout(deadline);
  clearTimeout(silent);
}
