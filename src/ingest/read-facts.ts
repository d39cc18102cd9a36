import { type RequestTier, readNetwork } from '../http/request.ts';
import { type ReadSignals, type Signals, saysAnything } from '../schema/signals.ts';
import { recogniseDefenses } from './classify/defenses.ts';
import type { Facts } from './classify/facts.ts';
import { readAgent } from './user-agent.ts';

/** Never `human` by omission: without these there is nothing that a rule could have looked at. */
function isIncomplete({ page, screen, media, graphics }: Signals, malformed: boolean): boolean {
  const sized = screen?.width != null && screen.height != null;
  return malformed || page?.userAgent == null || !sized || !saysAnything(media) || !saysAnything(graphics);
}

/** Network tier and signals side by side, with the privacy defenses that explain them. */
export function readFacts(read: ReadSignals, tier: RequestTier) {
  const { signals, malformed } = read;
  const network = readNetwork(tier);
  const agent = readAgent(signals.page?.userAgent ?? network.userAgent);
  const defenses = recogniseDefenses(signals, agent);
  const facts: Facts = { signals, network, agent, defenses, incomplete: isIncomplete(signals, malformed) };
  return {
    facts,
    unusable: { rfp: defenses.includes('firefox-rfp'), brave: defenses.includes('brave') },
  };
}
