import type { OnProgress } from '../ops/backup.ts';
import { EXIT, say } from './output.ts';
import { makeStageLine } from './progress.ts';

/** Ctrl-C, a manager that stops the unit, a terminal that is closed. */
const ENDS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Calls `stop` at the first signal that would end the process while `work` runs. */
export async function whileRunning<T>(stop: () => void, work: () => Promise<T>): Promise<T> {
  for (const signal of ENDS) process.once(signal, stop);
  try {
    return await work();
  } finally {
    for (const signal of ENDS) process.off(signal, stop);
  }
}

/** For work on copies in the clear, which takes several stages: none is left behind. */
export async function leavingNothing<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const { removeTemporaryFiles } = await import('../db/files.ts');
  const stop = (): void => {
    removeTemporaryFiles();
    say('gpd: interrupted; unfinished files were removed');
    process.exit(EXIT.failure);
  };
  const { update, end } = makeStageLine();
  return whileRunning(stop, () => work(update)).finally(end);
}
