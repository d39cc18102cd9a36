import { sealOldWords } from '../../storage/seal-words.ts';
import { contestWordsOf } from './contest-words.ts';
import { type HeldDeps, makeHeldErasures } from './held.ts';

/** What the server does about the rights without being asked. */
export function makeRightsUpkeep(deps: HeldDeps) {
  const { database, eraser, tenantOf } = deps;
  const held = makeHeldErasures(deps);
  const words = contestWordsOf(tenantOf);
  return {
    resumeErasures: async () => (await eraser.resumeStale()).failures,
    resumeHeldErasures: (kid: string) => held.resumeStale(kid),
    sealWords: (kid: string) => sealOldWords(database, words, kid),
  };
}
