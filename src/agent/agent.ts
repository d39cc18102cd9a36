import { makeSurface } from './surface.ts';

export const { identify, update, collect, observeInput, makePlaintext, sealBundle } = makeSurface(
  import.meta.url,
);
