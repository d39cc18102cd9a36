import { subscribe } from 'node:diagnostics_channel';

/**
 * Work on the event loop, cut into its turns while connections arrive. Node accepts one a turn (libuv since
 * 1.45): if turns answered hundreds of clients, a new one would wait for as many turns as connections wait
 * before its own.
 */

const waiting: (() => void)[] = [];
let shortTurns = 0;

function endTurn(): void {
  shortTurns -= 1;
  if (shortTurns > 0) setImmediate(endTurn);
}

// A connection was accepted, and others may wait: this turn and the next one are to be short.
subscribe('net.server.socket', () => {
  if (shortTurns === 0) setImmediate(endTurn);
  shortTurns = 2;
});

function runSome(): void {
  do waiting.shift()?.();
  while (waiting.length > 0 && shortTurns === 0);
  if (waiting.length > 0) setImmediate(runSome);
}

/** Runs acts in their order: at once, or one in each turn while connections arrive. */
export function inTurn(act: () => void): void {
  if (waiting.length === 0 && shortTurns === 0) act();
  else if (waiting.push(act) === 1) setImmediate(runSome);
}
