import { io } from './io.ts';
import { say } from './output.ts';
import type { Progress, ProgressState } from './ui/progress.tsx';

const SAY_MS = 10_000;

/** A bar on a terminal, a line now and then elsewhere. */
export async function makeReporter(first: ProgressState): Promise<Progress> {
  if (io().stderr.isTTY) return (await import('./ui/progress.tsx')).drawProgress(first);
  let last = first.now;
  return {
    update: (state) => {
      if (state.now - last < SAY_MS) return;
      last = state.now;
      say(`${state.done} ${state.unit ?? 'bundles'}`);
    },
    end: () => {},
  };
}
