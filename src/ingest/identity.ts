import { DAY } from '../lib/clock.ts';
import { hmacSha256, hmacSha256Text } from '../lib/crypto.ts';
import type { Signals } from '../schema/signals.ts';
import type { Identified, Identity, IngestTenant } from './ports.ts';
import { aboveFloor, stableInputs, type Unusable } from './stable.ts';
import type { AgentFacts } from './user-agent.ts';

/** Half of the HMAC: 22 characters of base64url (contract 3.4). */
const VISITOR_ID_BYTES = 16;

export function currentEpoch(now: number, epochDays: number): number {
  return Math.floor(now / (epochDays * DAY));
}

/** The moment from which this visitorId is no longer handed out. */
export function epochEnd(epoch: number, epochDays: number): number {
  return (epoch + 1) * epochDays * DAY;
}

/** visitorId = base64url(HMAC(tenant epoch key, durableId)), 22 characters. */
export function visitorIdOf(tenant: IngestTenant, durable: string, epoch: number): string {
  const full = hmacSha256(tenant.epochKey(epoch), `${tenant.kid}|${durable}`);
  return full.subarray(0, VISITOR_ID_BYTES).toString('base64url');
}

/** Exact match only: the same stable signals are the same visitor. Null below the identity floor. */
export function identify(
  tenant: IngestTenant,
  signals: Signals,
  facts: { readonly agent: AgentFacts; readonly unusable: Unusable; readonly epoch: number },
): Identity | null {
  const inputs = stableInputs(signals, facts.agent, facts.unusable);
  if (!aboveFloor(signals, inputs)) return null;
  const stableHash = hmacSha256(tenant.identityKey, JSON.stringify(inputs));
  const durable = hmacSha256Text(tenant.durableKey, stableHash);
  return { durable, visitorId: visitorIdOf(tenant, durable, facts.epoch), epoch: facts.epoch };
}

/** As it is recorded, of a visit of this day. */
export const identifiedOn = (
  identity: Identity,
  epochDays: number,
  visit: Pick<Identified, 'network' | 'day' | 'marked'>,
): Identified => ({ ...identity, epochEndsAt: epochEnd(identity.epoch, epochDays), ...visit });

/** interface 2: confidence in the identity, not in bot-ness. */
export function confidenceOf(identity: Identity | null, seen: boolean): number {
  if (!identity) return 0;
  return seen ? 0.99 : 0.6;
}
