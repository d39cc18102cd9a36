import { setTimeout as sleep } from 'node:timers/promises';
import type { GpdProcess } from '../../support/process.ts';
import type { House } from './house.ts';
import { type Book, KINDS, newBook, runLoad } from './load.ts';

const MIN_MS = 150;
const MAX_MS = 900;
/** Some kinds are answered seldom. */
const ARMED_MS = 5000;

/**
 * Load, and kill -9 in the middle of it: at a random moment, or in the turn in which the next answer of one kind arrives,
 * each kind in its round.
 */
export async function killUnderLoad(house: House, gpd: GpdProcess, round: number): Promise<Book> {
  const book = newBook();
  let killed = false;
  const dead = gpd.exited.then(() => {
    killed = true;
  });
  const kill = (): void => {
    if (!killed) process.kill(gpd.pid, 'SIGKILL');
    killed = true;
  };
  const load = runLoad(house, book, () => killed);
  while (book.acknowledged < 20) await sleep(5);
  await sleep(MIN_MS + Math.random() * (MAX_MS - MIN_MS));
  if (round % 4 === 3) kill();
  const kind = KINDS[round % KINDS.length];
  book.onAcknowledged = (path) => {
    if (path === kind) kill();
  };
  const timeout = setTimeout(kill, ARMED_MS);
  await dead;
  clearTimeout(timeout);
  await load;
  return book;
}
