import { type Logger, pino } from 'pino';

/** Structured lines on stderr. What is logged is a code, a count or a request id: never a signal, a token or an id. */
export function makeLogger(level: string): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return pino(options, pino.destination({ fd: 2, sync: true }));
}

/** An error as it may be logged: its name, code and stack without the message, which may quote bindings. */
export function describeFault(error: unknown): Record<string, string> {
  if (!(error instanceof Error)) return { name: typeof error };
  const { code } = error as { code?: unknown };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    code: typeof code === 'string' ? code : '',
    stack: frames.slice(0, 12).join('\n'),
  };
}
