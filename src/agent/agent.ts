import { createSurface } from './identify.ts';

/** The entry of the ES module `/v1/agent.js`: the public names of the browser agent. */

export const { identify, update, collect, observeInput, makePlaintext, sealBundle } = createSurface(
  import.meta.url,
);
