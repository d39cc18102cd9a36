import { loadAgentKeys } from '../../app/agents.ts';
import { makeDirectory } from '../../app/directory.ts';
import { makeIngestDeps, publicNames } from '../../app/ingest-deps.ts';
import type { Store } from '../../app/store.ts';
import { baseUrl, type Config } from '../../config.ts';
import { postBundle } from '../../egress/gpd-client.ts';
import { readEnvelope } from '../../ingest/envelope.ts';
import { type IngestDeps, ingest } from '../../ingest/pipeline.ts';
import { MAX_BODY_BYTES } from '../../schema/bundle.ts';
import { makeDeviceLookup } from '../../storage/device-lookup.ts';
import { readSnapshot } from '../../storage/snapshot.ts';
import type { ReplayLine } from './lines.ts';

export interface ReplayAnswer {
  readonly reason: string;
  /** Null where there was no verdict. */
  readonly class: string | null;
}

export type Runner = (line: ReplayLine) => Promise<ReplayAnswer>;

/** The nonces of one file; 16 bytes of hash each, so that a hundred thousand cost a few megabytes. */
function memoryRecorder(): IngestDeps['recorder'] {
  const claimed = new Set<string>();
  return {
    record: (entry) => {
      const key = `${entry.kid}|${entry.nonce}`;
      if (claimed.has(key)) return Promise.resolve('replay');
      claimed.add(key);
      return Promise.resolve('recorded');
    },
  };
}

/** The stages of the server on this database, each bundle at its own time, with the writes left out. */
export async function offlineRunner(store: Store, config: Config): Promise<Runner> {
  const directory = makeDirectory(Date.now);
  directory.apply(await readSnapshot(store.database, -1), store.masterKey);
  const agents = await loadAgentKeys(store.database);
  const signatures = new Set<string>();
  const deps = makeIngestDeps(config, {
    tenants: (kid) => directory.tenant(kid),
    findAgentKey: agents,
    claimAgentNonce: (nonce) => {
      const fresh = !signatures.has(nonce);
      signatures.add(nonce);
      return Promise.resolve(fresh);
    },
    authorities: () => publicNames(config, baseUrl(config)),
    now: (plaintext) => plaintext.clientTs,
    devices: makeDeviceLookup(store.database, Date.now),
    recorder: memoryRecorder(),
    issueToken: () => '',
  });
  return async (line) => {
    const body = Buffer.from(line.body);
    if (body.length > MAX_BODY_BYTES) return { reason: 'payload-too-large', class: null };
    const bundle = readEnvelope(body);
    if (!bundle) return { reason: 'malformed-sealed-bundle', class: null };
    const input = {
      target: '/_fp/i/v1',
      bundle,
      requestId: `line ${line.number}`,
      headers: line.headers,
      https: true,
      session: '',
      network: '',
      ja4: null,
    };
    const { response } = await ingest(deps, input);
    return { reason: response.reason, class: response.reason === 'ok' ? response.class : null };
  };
}

/** Against a running server, which judges freshness by its own clock. */
export function remoteRunner(base: string): Runner {
  return async (line) => {
    const answer = await postBundle(base, line.body, line.headers);
    return { reason: answer.reason, class: answer.reason === 'ok' ? answer.class : null };
  };
}
