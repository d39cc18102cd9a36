import type { Response } from 'express';
import { type BuiltFiles, SHORT, sendBuilt } from '../http/built-file.ts';
import type { Handlers } from '../http/register.ts';

/** The agent's files. */
export function scriptRoutes(
  files: BuiltFiles,
): Handlers<'agentScript' | 'classicScript' | 'workerScript' | 'passkeyScript' | 'myDataScript'> {
  const script = (name: string) => async (_call: unknown, response: Response) =>
    sendBuilt(response, await files(name), { type: 'text/javascript', cache: SHORT });
  return {
    agentScript: script('agent.js'),
    classicScript: script('agent.classic.js'),
    workerScript: script('agent-worker.js'),
    passkeyScript: script('agent-passkey.js'),
    myDataScript: script('my-data.js'),
  };
}
