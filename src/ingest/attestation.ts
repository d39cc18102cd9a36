import type { Signals } from '../schema/signals.ts';
import { isNewSafari, softwareGraphicsOnly, type Unusable } from './stable.ts';
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

/** What of a device's past says whether this is the same one. */
export interface Past {
  readonly seen: boolean;
  /** This network of the device was counted today. */
  readonly marked: boolean;
  readonly spread: Spread;
}

/** The most telling stable signal alone, the canvas (Hiding in the Crowd, 2018): bits of several are correlated and never added. */
const PRIOR_SHARE = 2 ** -8.6;
/** Of the devices that come back on one day, how many come from a second network: an assumption. */
const MOVES = 0.1;
/** One device leaves a pair a day from one network. */
const OWN_PAIRS = 7;
/** Others that a week of 5,000 pairs has not shown yet (Krichevsky and Trofimov). */
const UNSEEN = 0.5;

/** (a) Families whose members look alike by nature. An iPad in desktop mode is a Macintosh with touch points. */
export function isCoarse(signals: Signals, agent: AgentFacts, unusable: Unusable): boolean {
  const ipad = agent.os === 'macos' && agent.engine === 'webkit' && (signals.page?.maxTouchPoints ?? 0) > 1;
  return agent.os === 'ios' || ipad || isNewSafari(agent) || unusable.rfp || softwareGraphicsOnly(signals);
}

/**
 * (d) The chance that a second network of one day is another device with the same values, and not the known one that moved
 * (docs/classification.md, Shared ids). 0 for the day's first: marks die with their day, so that nothing says it is new.
 */
export function collisionChance({ seen, marked, spread }: Past): number {
  const { networksToday, pairsOfWeek, tenantPairsOfWeek } = spread;
  if (!seen || marked || networksToday < 2) return 0;
  const others =
    tenantPairsOfWeek < MIN_PAIRS
      ? Math.max(1, tenantPairsOfWeek) * PRIOR_SHARE
      : UNSEEN + Math.max(0, pairsOfWeek - 1 - OWN_PAIRS);
  return others / (others + MOVES);
}

/** (b) too many networks in a day, or (c) too large a share of the tenant's week. */
export function isShared(spread: Spread, limits: AttestationLimits): boolean {
  if (spread.networksToday > limits.maxNetworksPerDay) return true;
  const { pairsOfWeek, tenantPairsOfWeek } = spread;
  return tenantPairsOfWeek >= MIN_PAIRS && pairsOfWeek / tenantPairsOfWeek >= 2 ** -limits.minIdentityBits;
}
