import { z } from 'zod';
import type { Config } from '../config.ts';
import { probe } from '../egress/gpd-client.ts';
import { askLocalServer, localUrl } from '../egress/local-server.ts';
import { tryOr } from '../lib/errors.ts';

/** Asks a running server for its health and readiness, for `gpd status` and `gpd doctor`. */

/** The address answers, but not as gpd does. */
export const NO_GPD = 'no answer of a gpd';
/** The connection is accepted, but no answer comes. */
export const NO_ANSWER = 'no answer in time';

/** Codes of node:http and of TLS for an answer that is not HTTP, or not of the scheme that was asked for. */
const FOREIGN = /^(?:HPE_\w+|ECONNRESET|EPROTO|ERR_SSL_\w+)$/;

function describeSilence({ code, name, message }: NodeJS.ErrnoException): string {
  if (name === 'AbortError' || name === 'TimeoutError') return NO_ANSWER;
  return FOREIGN.test(code ?? '') ? NO_GPD : message;
}

const healthSchema = z.object({ version: z.string() });
const readySchema = z.object({
  notReady: z.array(z.string()),
  degraded: z.array(z.string()).default([]),
  housekeeping: z.object({ completeAt: z.iso.datetime().nullable() }),
});

const parseJson = <T>(schema: z.ZodType<T>, text: string | undefined): T | null =>
  tryOr(() => schema.parse(JSON.parse(text ?? '')), null);

/** Asks the server at `url`, or else the one on this machine. `problem` says why it did not answer. */
export async function readServerState(config: Config, url?: string) {
  let problem: string | null = null;
  const askLocal = (path: string) =>
    askLocalServer(config, path).catch((error: Error) => {
      problem = describeSilence(error);
      return null;
    });
  const ask = (path: string) => (url === undefined ? askLocal(path) : probe(`${url}${path}`));
  const health = parseJson(healthSchema, (await ask('/healthz'))?.text);
  const ready = health && parseJson(readySchema, (await ask('/readyz'))?.text);
  const at = ready?.housekeeping.completeAt ?? null;
  return {
    url: url ?? localUrl(config),
    problem: health ? null : (problem ?? NO_GPD),
    /** Null: no answer. */
    health,
    notReady: ready?.notReady ?? [],
    degraded: ready?.degraded ?? [],
    /** Epoch milliseconds; null: no sweep was complete since the server started. */
    sweptAt: at === null ? null : Date.parse(at),
  };
}
