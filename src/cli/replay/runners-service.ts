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
import type { ReplayLine } from './line-files.ts';

/** Judges the bundles of `gpd replay`: offline with the database of this machine, or by a running server. */

export interface ReplayAnswer {
  readonly reason: string;
  /** Null: no verdict. */
  readonly class: string | null;
  /** Class under the policy of --policy or the tenant's shadow policy; null without either. */
  readonly shadowClass: string | null;
}

const unjudged = (reason: string): ReplayAnswer => ({ reason, class: null, shadowClass: null });

export type Runner = (line: ReplayLine) => Promise<ReplayAnswer>;

/** Claims nonces in memory, by their hashes: some hundred bytes per line of the file. */
function createClaims() {
  const hashes = new Set<string>();
  return (nonce: string): boolean => {
    const { size } = hashes;
    return hashes.add(sha256Text(nonce)).size > size;
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
      const [knownDevice = null] = await lookUpDevices(database.read, totals, device ? [device] : []);
      const entry = decide(knownDevice);
      onShadow(entry.shadow?.class ?? null);
      return claim(`${kid}|${nonce}`) ? entry : 'replay';
    },
  };
}

/** Replaces the tenant's shadow policy with that of --policy. */
function withShadow(tenant: Tenant | undefined, policy: TenantPolicy | null): Tenant | undefined {
  return tenant && policy ? (Object.create(tenant, { shadow: { value: policy } }) as Tenant) : tenant;
}

/** Runs the server's ingest on this database without its writes; `now` is the time in each bundle. */
export async function offlineRunner(services: Services, policy: TenantPolicy | null): Promise<Runner> {
  const { config, database, tenants } = services;
  let shadowClass: string | null = null;
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
      shadowClass = shadow;
    }),
    issueToken: () => '',
    noteVisit: () => {},
    // Any session passes, because a file has no cookies.
    sessions: { has: () => true },
    updates: { endsChain: () => Promise.resolve(false), linkedTo: () => Promise.resolve(null) },
    // The proof always succeeds: nobody can ask today whether a grant was live at the time of the bundle.
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
    return { reason: 'ok', class: response.class, shadowClass };
  };
}

/** Sends the bundles to a running server, which judges their age by its clock. */
export function remoteRunner(base: string): Runner {
  return async (line) => {
    const answer = await postBundle(base, line.body, line.headers);
    return { reason: answer.reason, class: answer.reason === 'ok' ? answer.class : null, shadowClass: null };
  };
}
