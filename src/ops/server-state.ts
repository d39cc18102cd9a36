import { z } from 'zod';
import type { Config } from '../config.ts';
import { probe } from '../egress/gpd-client.ts';
import { askLocalServer, localUrl } from '../egress/local-server.ts';
import { tryOr } from '../lib/errors.ts';

/** The state that a running server reports, for `gpd status` and `gpd doctor`. */

const healthSchema = z.object({ version: z.string() });
const readySchema = z.object({
  notReady: z.array(z.string()),
  degraded: z.array(z.string()).default([]),
  housekeeping: z.object({ completeAt: z.iso.datetime().nullable() }),
});

const parseJson = <T>(schema: z.ZodType<T>, text: string | undefined): T | null =>
  tryOr(() => schema.parse(JSON.parse(text ?? '')), null);

/** The server at `url`, else the one on this machine; `problem` says why nothing was learned of it. */
export async function readServerState(config: Config, url?: string) {
  let problem: string | null = null;
  const askHere = (path: string) =>
    askLocalServer(config, path).catch((error: Error) => {
      problem = error.message;
      return null;
    });
  const ask = (path: string) => (url === undefined ? askHere(path) : probe(`${url}${path}`));
  const health = parseJson(healthSchema, (await ask('/healthz'))?.text);
  const ready = health && parseJson(readySchema, (await ask('/readyz'))?.text);
  const at = ready?.housekeeping.completeAt ?? null;
  return {
    url: url ?? localUrl(config),
    problem: health ? null : (problem ?? 'no answer of a gpd'),
    /** Null where nothing answers. */
    health,
    notReady: ready?.notReady ?? [],
    degraded: ready?.degraded ?? [],
    /** Null where no sweep is complete since the start. */
    sweptAt: at === null ? null : Date.parse(at),
  };
}
