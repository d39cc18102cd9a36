import { readFile } from 'node:fs/promises';
import { Router } from 'express';
import { Refusal } from '../../lib/errors.ts';
import { sha256 } from '../../lib/hash.ts';
import { onlyMethods } from './methods.ts';
import { open } from './pubkey.ts';

const SCRIPTS = ['agent.js', 'agent.classic.js', 'agent-worker.js', 'my-data.js'] as const;

interface Script {
  readonly body: Buffer;
  readonly etag: string;
}

/** The browser's files, built into `directory`; read once, on first use. */
export function scriptRoutes(directory: URL): Router {
  const router = Router();
  const cache = new Map<string, Script>();

  async function load(name: string): Promise<Script> {
    const cached = cache.get(name);
    if (cached) return cached;
    let body: Buffer;
    try {
      body = await readFile(new URL(name, directory));
    } catch {
      throw new Refusal('not-found', { details: ['The browser files are not built: run `npm run build`.'] });
    }
    const script = { body, etag: `"${sha256(body).toString('base64url')}"` };
    cache.set(name, script);
    return script;
  }

  for (const name of SCRIPTS) {
    router
      .route(`/v1/${name}`)
      .get(async (_request, response) => {
        const script = await load(name);
        response.set({
          ...open,
          'content-type': 'text/javascript; charset=utf-8',
          'cache-control': 'public, max-age=300',
          etag: script.etag,
        });
        response.send(script.body);
      })
      .all(onlyMethods('GET', 'HEAD'));
  }
  return router;
}
