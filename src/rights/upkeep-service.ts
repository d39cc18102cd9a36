import { contestWordsOf } from './contests/contest-text-of.ts';
import { sealOldWords } from './contests/seal-words-store.ts';
import { type HeldDeps, makeHeldErasures } from './erase/held-service.ts';

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
