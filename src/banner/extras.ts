import { createMedia, type MediaDeps } from './media.ts';
import { createScripts } from './scripts.ts';
import { css } from './view/sheet.css';
import { sheetParts } from './view/sheet.ts';

/**
 * The second file of the banner, for a press or a grant; `load-extras.ts` fetches it. Without it
 * nothing that waits starts, and the first layer takes every answer.
 */

/** @returns a function that starts what is granted now, and empties what no longer is */
function createRunner(deps: MediaDeps): () => void {
  const updateMedia = createMedia(deps);
  const runScripts = createScripts(deps.startable);
  return () => {
    updateMedia();
    runScripts();
  };
}

export const extras = { createRunner, css, sheetParts };
