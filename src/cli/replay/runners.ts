import { randomBytes } from 'node:crypto';
import { loadAgentKeys } from '../../agents/service.ts';
import { createBotAuth } from '../../agents/verify.ts';
import { baseUrl } from '../../config.ts';
import type { Database } from '../../db/engine.ts';
import { postBundle } from '../../egress/gpd-client.ts';
import { createTotals, lookUpDevices } from '../../ingest/devices-store.ts';
import { type IngestServices, ingest } from '../../ingest/ingest.ts';
import { readEnvelope, unseal } from '../../ingest/open.ts';
import { poolRandom, sha256Text } from '../../lib/crypto.ts';
import { MAX_BODY_BYTES } from '../../schema/bundle.ts';
import type { TenantPolicy } from '../../schema/policy.ts';
import type { Services } from '../../services.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import type { ReplayLine } from './lines.ts';

export interface ReplayAnswer {
  readonly reason: string;
  /** Null where there was no verdict. */
  readonly class: string | null;
  /** What another policy says; null without one. */
  readonly otherwise: string | null;
}

const unjudged = (reason: string): ReplayAnswer => ({ reason, class: null, otherwise: null });

export type Runner = (line: ReplayLine) => Promise<ReplayAnswer>;

/** The nonces of one file, by hashes: all that grows with it, some hundred bytes each. */
function createClaims() {
  const known = new Set<string>();
  return (nonce: string): boolean => {
    const { size } = known;
    return known.add(sha256Text(nonce)).size > size;
  };
}

function memoryRecorder(
  database: Database,
  claim: ReturnType<typeof createClaims>,
  onShadow: (shadow: string | null) => void,
): IngestServices['recorder'] {
  const totals = createTotals(() => performance.now());
  return {
    async record({ claim: { kid, nonce }, device, decide }) {
      const [known = null] = await lookUpDevices(database.read, totals, device ? [device] : []);
      const entry = decide(known);
      onShadow(entry.shadow?.class ?? null);
      return claim(`${kid}|${nonce}`) ? entry : 'replay';
    },
  };
}

/** The policy of a file replaces the tenant's shadow. */
function withShadow(tenant: Tenant | undefined, policy: TenantPolicy | null): Tenant | undefined {
  return tenant && policy ? (Object.create(tenant, { shadow: { value: policy } }) as Tenant) : tenant;
}

/** The ingest of the server on this database, each bundle at its own time, with the writes left out. */
export async function offlineRunner(services: Services, policy: TenantPolicy | null): Promise<Runner> {
  const { config, database, tenants } = services;
  let otherwise: string | null = null;
  const claimSignature = createClaims();
  const replayed: IngestServices = {
    config,
    random: poolRandom(randomBytes),
    tenants: (kid) => withShadow(tenants.find(kid), policy),
    botAuth: createBotAuth(config, () => baseUrl(config), {
      findKey: await loadAgentKeys(database),
      claimNonce: ({ nonce }) => Promise.resolve(claimSignature(nonce)),
    }),
    now: (plaintext) => plaintext.clientTs,
    requireClock: () => {},
    recorder: memoryRecorder(database, createClaims(), (shadow) => {
      otherwise = shadow;
    }),
    issueToken: () => '',
    noteVisit: () => {},
    // A file holds no cookies.
    sessions: { has: () => true },
    updates: { endsChain: () => Promise.resolve(false), linkedTo: () => Promise.resolve(null) },
    // Whether a grant was live at the bundle's own time cannot be asked afterwards: the proof counts as given.
    proveConsent: ({ purposes }) => Promise.resolve(purposes),
    grants: { find: () => Promise.resolve(null), note: () => Promise.resolve(false) },
  };
  return async (line) => {
    const body = Buffer.from(line.body);
    if (body.length > MAX_BODY_BYTES) return unjudged('payload-too-large');
    const bundle = readEnvelope(body);
    if (!bundle) return unjudged('malformed-sealed-bundle');
    const input = {
      target: '/_fp/i/v1',
      requestId: `line ${line.number}`,
      headers: line.headers,
      https: true,
      session: '',
      network: '',
      ja4: null,
      client: null,
      hosting: null,
    };
    const { response } = await ingest(replayed, unseal(bundle, tenants.find(bundle.kid)), input);
    if (response.reason !== 'ok') return unjudged(response.reason);
    return { reason: 'ok', class: response.class, otherwise };
  };
}

/** Against a running server, which judges freshness by its own clock. */
export function remoteRunner(base: string): Runner {
  return async (line) => {
    const answer = await postBundle(base, line.body, line.headers);
    return { reason: answer.reason, class: answer.reason === 'ok' ? answer.class : null, otherwise: null };
  };
}
