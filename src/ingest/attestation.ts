import type { Signals } from '../schema/signals.ts';
import { softwareGraphicsOnly, type Unusable } from './stable.ts';
import type { AgentFacts } from './user-agent.ts';

/** When an id may belong to several people, so that nothing of weight should hang on it (contract 3.4). */

/** Below so many pairs a tenant's week says nothing about shares. */
const MIN_PAIRS = 5000;

/** How widely one device id was seen, this sighting included. */
export interface Spread {
  /** Client networks of this id today. */
  readonly networksToday: number;
  /** (id, network) pairs of this id in the last seven days. */
  readonly pairsOfWeek: number;
  /** All such pairs of the tenant in the last seven days. */
  readonly tenantPairsOfWeek: number;
}

export interface AttestationLimits {
  readonly maxNetworksPerDay: number;
  readonly minIdentityBits: number;
}

/** (a) Families whose members look alike by nature. An iPad in desktop mode is a Macintosh with touch points. */
export function isCoarse(signals: Signals, agent: AgentFacts, unusable: Unusable): boolean {
  const ipad = agent.os === 'macos' && agent.engine === 'webkit' && (signals.page?.maxTouchPoints ?? 0) > 1;
  const newSafari = agent.browser === 'safari' && agent.major >= 17;
  return agent.os === 'ios' || ipad || newSafari || unusable.rfp || softwareGraphicsOnly(signals);
}

/** (b) too many networks in a day, or (c) too large a share of the tenant's week. */
export function isShared(spread: Spread, limits: AttestationLimits): boolean {
  if (spread.networksToday > limits.maxNetworksPerDay) return true;
  const { pairsOfWeek, tenantPairsOfWeek } = spread;
  return tenantPairsOfWeek >= MIN_PAIRS && pairsOfWeek / tenantPairsOfWeek >= 2 ** -limits.minIdentityBits;
}
