import type { Router } from 'express';
import { type BuiltFiles, SHORT, sendBuilt } from '../http/built-file.ts';
import { exactRouter } from '../http/exact-router.ts';
import { openMethods } from '../http/methods.ts';

const SCRIPTS = ['agent.js', 'agent.classic.js', 'agent-worker.js', 'my-data.js'] as const;

/** The agent's files. */
export function scriptRoutes(files: BuiltFiles): Router {
  const router = exactRouter();
  for (const name of SCRIPTS) {
    router
      .route(`/v1/${name}`)
      .get(async (request, response) => {
        sendBuilt(request, response, await files(name), { type: 'text/javascript', cache: SHORT });
      })
      .all(openMethods('GET', 'HEAD'));
  }
  return router;
}
