import { type HeldDeps, makeHeldErasures } from './erase/held-service.ts';

/** What the server does about the rights without being asked. */
export function makeRightsUpkeep(deps: HeldDeps) {
  const { eraser } = deps;
  const held = makeHeldErasures(deps);
  return {
    resumeErasures: async () => (await eraser.resumeStale()).failures,
    resumeHeldErasures: (kid: string) => held.resumeStale(kid),
  };
}
