import { UNSIGNED } from '../../src/agents/reasons.ts';
import { type IngestInput, type IngestServices, ingest } from '../../src/ingest/ingest.ts';
import { unseal } from '../../src/ingest/open.ts';
import type { NonceClaim, RecordEntry } from '../../src/ingest/ports.ts';
import type { KnownDevice } from '../../src/ingest/verdict/identity.ts';
import type { SealedBundle } from '../../src/schema/bundle.ts';
import { ingestResponseSchema } from '../../src/schema/responses.ts';
import { sealTo } from '../../src/seal/seal.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import { createPair } from '../seal/support.ts';
import { ORIGIN } from '../support/constants.ts';
import { createIngestTenant, makePlaintext, NOW, seededRandom } from '../support/make.ts';
import { createRawSignals } from '../support/make-signals.ts';

const random = seededRandom('test/ingest');
const pair = createPair(random(32));
export const HEADERS = {
  'user-agent': createRawSignals()['page']?.['userAgent'] as string,
  'accept-language': 'en-GB',
  'sec-ch-ua': '"Chromium";v="142"',
  'sec-ch-ua-platform': '"Linux"',
  'sec-fetch-site': 'same-origin',
  origin: ORIGIN,
};
const GRANT = {
  choice: 'granted',
  policyVersion: 1,
  expiresAt: null,
  overGpc: false,
  given: null,
  doubtSeq: null,
  at: NOW,
  definition: null,
} as const;
const UNSEEN: KnownDevice = {
  seen: false,
  neverAutomation: false,
  marked: false,
  spread: { networksToday: 1, pairsOfWeek: 1, tenantPairsOfWeek: 1 },
};

const SETTINGS: IngestServices['config'] = {
  max_clock_skew: 300,
  epoch_days: 30,
  max_networks_per_day: 20,
  min_identity_bits: 12,
  collision_risk: 0.01,
};

export interface World {
  readonly tenant?: Partial<Tenant>;
  readonly outcome?: 'gone' | Error;
  readonly agent?: string;
  /** Purposes that the tenant's ledger grants to the principal that the bundle names. */
  readonly proven?: readonly string[];
  readonly plaintext?: object;
  readonly signals?: object;
  readonly input?: Partial<IngestInput>;
  readonly bundle?: SealedBundle;
  readonly services?: Partial<IngestServices>;
}

/** Runs one bundle; `touched` are the ports that were asked, `entries` what was recorded. */
export async function run(world: World = {}) {
  const touched: string[] = [];
  const entries: (RecordEntry & { claim: NonceClaim })[] = [];
  const tenant = createIngestTenant([pair.scalar], world.tenant);
  const services: IngestServices = {
    tenants: (kid) => (kid === tenant.kid ? tenant : undefined),
    recorder: {
      async record({ claim, device, decide }) {
        if (device) touched.push('lookup');
        const entry = decide(device && UNSEEN);
        touched.push('record');
        entries.push({ ...entry, claim });
        if (world.outcome instanceof Error) throw world.outcome;
        return world.outcome ?? entry;
      },
    },
    async botAuth() {
      touched.push('botAuth');
      const agent = world.agent ?? null;
      return { ...UNSIGNED, status: agent === null ? 'none' : 'verified', agent, named: agent };
    },
    async proveConsent(claim) {
      touched.push(`prove ${claim.kid} ${claim.principalId} ${claim.purpose} ${claim.proof.seq}`);
      return claim.purposes.filter((purpose) => world.proven?.includes(purpose));
    },
    grants: {
      async find({ proof }) {
        touched.push('grant');
        return { ...proof, ...GRANT };
      },
      async note(_claim, _grant, { class: by }) {
        touched.push(`note ${by}`);
        return by === 'human';
      },
    },
    issueToken: ({ kid, requestId, session, origin }) => `token ${kid} ${requestId} ${session} ${origin}`,
    random,
    noteVisit: () => {},
    sessions: { has: () => true },
    updates: { endsChain: () => Promise.resolve(false), linkedTo: () => Promise.resolve(null) },
    now: () => NOW,
    requireClock: () => {},
    config: SETTINGS,
    ...world.services,
  };
  const plaintext = { ...makePlaintext(), ...world.plaintext };
  const whole = { ...plaintext, signals: { ...plaintext.signals, ...world.signals } };
  const bundle = world.bundle ?? sealTo('acme', pair.publicKey, Buffer.from(JSON.stringify(whole)), random);
  const answer = await ingest(services, unseal(bundle, services.tenants(bundle.kid)), {
    requestId: 'req_1',
    target: '/_fp/i/v1',
    client: null,
    hosting: null,
    network: 'network-hash',
    headers: HEADERS,
    https: true,
    ja4: null,
    session: 'session-1',
    ...world.input,
  });
  ingestResponseSchema.parse(answer.response);
  return { ...answer, touched, entries };
}
