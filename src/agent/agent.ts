import { createSurface } from './identify.ts';

export const { identify, update, collect, observeInput, makePlaintext, sealBundle } = createSurface(
  import.meta.url,
);
