import { Box, render, Text } from 'ink';

/** A progress line with count, rate and time left (look.md, Terminal). */

export interface ProgressState {
  readonly done: number;
  readonly bytes: number;
  /** Null when the input is a pipe. */
  readonly totalBytes: number | null;
  readonly startedAt: number;
  readonly now: number;
  /** What is counted; `bundles` when it is not said. */
  readonly unit?: string;
}

const BAR_WIDTH = 30;

function timeLeft(share: number, elapsedSeconds: number): string {
  const seconds = Math.ceil(elapsedSeconds / share - elapsedSeconds);
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s left` : `${seconds} s left`;
}

export function progressText(state: ProgressState): string {
  const elapsed = Math.max(0.001, (state.now - state.startedAt) / 1000);
  const rate = `${Math.round(state.done / elapsed).toLocaleString('en')} a second`;
  const parts = [`${state.done.toLocaleString('en')} ${state.unit ?? 'bundles'}`, rate];
  if (state.totalBytes !== null && state.bytes > 0) {
    const share = Math.min(1, state.bytes / state.totalBytes);
    parts.unshift(`${Math.floor(share * 100)} %`);
    parts.push(timeLeft(share, elapsed));
  }
  return parts.join(', ');
}

export function ProgressBar({ state }: { readonly state: ProgressState }) {
  const share = state.totalBytes ? Math.min(1, state.bytes / state.totalBytes) : 0;
  const filled = Math.round(share * BAR_WIDTH);
  return (
    <Box gap={1}>
      <Text>{'█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)}</Text>
      <Text>{progressText(state)}</Text>
    </Box>
  );
}

export interface Progress {
  update(state: ProgressState): void;
  end(): void;
}

/** Draws on stderr: stdout is data. */
export function drawProgress(first: ProgressState): Progress {
  const view = render(<ProgressBar state={first} />, { stdout: process.stderr, patchConsole: false });
  return {
    update: (state) => view.rerender(<ProgressBar state={state} />),
    end: () => view.unmount(),
  };
}
