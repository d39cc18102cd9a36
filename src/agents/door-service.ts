import type { Limiter } from '../http/request.ts';
import { type Clock, HOUR, SECOND } from '../lib/clock.ts';
import { createBounded } from '../lib/collections.ts';
import type { AgentAnswer, AgentRequest } from '../schema/agents.ts';
import type { TenantDirectory } from '../tenants/directory.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { type HostJudge, type HostRequest, judgeAtHost, requestAt, withoutDefaultPort } from './host.ts';
import { countedName, type Decided, decideByPolicy, passes, STATUS_OF } from './policy.ts';
import { type AgentOutcome, intentOf, UNSIGNED } from './reasons.ts';

/** Judges requests to a site's own hosts, for a proxy in front of it or for its backend. */

export interface Door {
  /**
   * Judges a request that a proxy describes, and answers it by the tenant's policy. A refusal is stored
   * before it is answered.
   * @throws {Unavailable}
   */
  check(request: DoorRequest): Promise<DoorAnswer>;
  /**
   * Judges a request that a tenant's backend describes.
   * @throws {Unavailable}
   */
  verify(request: AgentRequest, requestId: string): Promise<AgentAnswer>;
}

/** A visitor's request. */
export interface DoorRequest extends HostRequest {
  /** The client, for a rate of requests without a verified signature. */
  readonly limitKey: string;
  /** The target for the policy; null: the proxy did not say, so that any row may concern the request. */
  readonly asked: string | null;
}

export interface DoorAnswer {
  readonly status: 204 | 401 | 403 | 429;
  readonly outcome: AgentOutcome;
  /** Names the stored decision of a refusal. */
  readonly caseId: string | null;
  /** Seconds to wait, with 429. */
  readonly wait: number;
}

/** A refusal, as it is stored: it says nothing of the visitor. */
export interface AgentRefusal {
  readonly requestId: string;
  readonly at: number;
  readonly outcome: AgentOutcome;
  readonly decided: Decided;
}

export interface DoorParts extends HostJudge {
  readonly clock: Clock;
  readonly tenants: Pick<TenantDirectory, 'all'>;
  readonly record: (tenant: Tenant, refusal: AgentRefusal) => Promise<void>;
  /** Counts a request by the name of its kind. */
  readonly count: (tenant: Tenant, name: string) => void;
  /** The limiter of a row. @param rate COUNT/SECONDS */
  readonly limiterOf: (bucket: string, rate: string) => Limiter;
}

export function createDoor(parts: DoorParts): Door {
  const recordShared = createSharedRecord(parts);
  return {
    async check(request) {
      const tenant = tenantAt(parts.tenants.all(), request.host, request.https);
      if (!tenant) return { status: 204, outcome: UNSIGNED, caseId: null, wait: 0 };
      const outcome = await judgeAtHost(parts, request, parts.clock());
      const decided = decideByPolicy(tenant.settings['agents.policy'], outcome, request.asked);
      const isDry = tenant.settings['agents.dryRun'];
      const wait = decided.rate === null ? 0 : await waitFor(parts, tenant, request, outcome, decided);
      const status = passes(decided, outcome, wait) ? 204 : STATUS_OF[decided.action];
      const name = countedName(outcome, decided, { isRefused: status !== 204, isDry });
      parts.count(tenant, name);
      if (status === 204 || isDry) return { status: 204, outcome, caseId: null, wait: 0 };
      const refusal = { requestId: request.requestId, at: parts.clock(), outcome, decided };
      return { status, outcome, caseId: await recordShared(tenant, name, refusal), wait };
    },
    async verify(described, requestId) {
      const outcome = await judgeAtHost(parts, { ...requestAt(described), requestId }, parts.clock());
      const { status, agent, keyid, tag, expires, reason } = outcome;
      return { status, agent, keyid, tag, intent: intentOf(outcome), expires, reason };
    },
  };
}

/**
 * The tenant whose pages are at this host; of several the one with the scheme. Servers choose a site by the
 * name alone, without its last dot, so a port that no origin has must not end the policy.
 */
function tenantAt(tenants: readonly Tenant[], host: string, https: boolean): Tenant | undefined {
  const name = withoutDefaultPort(host, https).replace(/\.?(?=(?::\d*)?$)/, '');
  const [origin, other] = [`https://${name}`, `http://${name}`];
  const byScheme = https ? origin : other;
  return (
    tenants.find(({ origins }) => origins.has(byScheme)) ??
    tenants.find(({ origins }) => origins.has(origin) || origins.has(other)) ??
    tenants.find(({ origins }) => [...origins].some((one) => hasName(one, withoutPort(name))))
  );
}

const withoutPort = (host: string): string => host.replace(/:\d*$/, '');

const hasName = (origin: string, name: string): boolean =>
  origin.includes(name) && withoutPort(origin.slice(origin.indexOf('//') + 2)) === name;

/** A verified agent is counted by its name, whatever addresses it comes from. */
function waitFor(
  { limiterOf }: DoorParts,
  { kid }: Tenant,
  { limitKey }: DoorRequest,
  { agent }: AgentOutcome,
  { row, rate }: Decided,
): Promise<number> {
  return limiterOf(
    `agents ${kid} ${row}`,
    rate ?? '',
  )(agent === null ? `client ${limitKey}` : `agent ${agent}`);
}

/** Refusals that are stored in one second: of one kind, and of one tenant. */
const STORED_OF_KIND = 10;
const STORED_OF_TENANT = 20;

/**
 * A later one shares the last decision of its kind: another kind's could name another agent. A
 * kind that has none of the last hour gets one, and a tenant has few kinds.
 */
function createSharedRecord({ record }: DoorParts) {
  const seconds = createBounded<{ readonly second: number; count: number }>(20_000);
  const latest = createBounded<{ readonly at: number; readonly id: Promise<string> } | null>(10_000);
  function countIn(key: string, second: number) {
    const found = seconds.get(key);
    const current = found?.second === second ? found : { second, count: 0 };
    seconds.set(key, current);
    return current;
  }
  return (tenant: Tenant, name: string, refusal: AgentRefusal): Promise<string> => {
    const owner = `${tenant.kid} ${tenant.since}`;
    const kind = `${owner} ${name}`;
    const second = Math.floor(refusal.at / SECOND);
    const [ofTenant, ofKind] = [countIn(owner, second), countIn(kind, second)];
    const last = latest.get(kind);
    const isFull = ofKind.count >= STORED_OF_KIND || ofTenant.count >= STORED_OF_TENANT;
    if (isFull && last && Math.abs(refusal.at - last.at) < HOUR) return last.id;
    for (const counted of [ofTenant, ofKind]) counted.count += 1;
    const id = record(tenant, refusal).then(() => refusal.requestId);
    latest.set(kind, { at: refusal.at, id });
    // A failed write has no number to share.
    id.catch(() => latest.get(kind)?.id === id && latest.set(kind, null));
    return id;
  };
}
