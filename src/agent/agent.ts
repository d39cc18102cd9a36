import { makeSurface } from './surface.ts';

export const { identify, collect, observeInput, makePlaintext, sealBundle } = makeSurface(import.meta.url);
