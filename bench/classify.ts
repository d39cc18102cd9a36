import {
  createECDH,
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import type { BotAuthRequest } from '../src/agents/message.ts';
import { type BotAuthDeps, verifyBotAuth } from '../src/agents/verify.ts';
import { classify } from '../src/ingest/classify/classify.ts';
import { DEFAULT_POLICY } from '../src/ingest/classify/policy.ts';
import { identify } from '../src/ingest/identity.ts';
import { readFacts } from '../src/ingest/read-facts.ts';
import { type ReadSignals, readSignals } from '../src/schema/signals.ts';
import type { Tenant } from '../src/tenants/tenant.ts';
import { note, type Row } from './lib/report.ts';
import { makeDevice } from './lib/signals.ts';
import { median, pairedRatio, seededRandom } from './lib/stats.ts';

/** What is computed for a bundle beside opening it, in this process; and what a signed agent costs. */

export interface ClassifyPlan {
  readonly rounds: number;
  readonly count: number;
  readonly seed: number;
}

const DEVICES = 500;
const SIGNATURES = 2000;
const EPOCH = 690;
const HOST = 'gpd.example';
const TARGET = '/_fp/i/v1';
const DIRECTORY = 'https://agent.example/.well-known/http-message-signatures-directory';

export interface Task {
  readonly once: (i: number) => unknown;
  /** Microseconds of CPU, one value a round. */
  readonly micros: number[];
}

export function makeTask(once: Task['once']): Task {
  return { once, micros: [] };
}

async function runBatch({ once }: Task, count: number): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < count; i += 1) {
    const result = once(i);
    if (result instanceof Promise) await result;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

/** Turn by turn; the first round only warms up. */
export async function runRounds(
  tasks: readonly Task[],
  plan: Pick<ClassifyPlan, 'rounds' | 'count'>,
): Promise<void> {
  for (let round = 0; round <= plan.rounds; round += 1) {
    for (const task of tasks) {
      const micros = await runBatch(task, plan.count);
      if (round > 0) task.micros.push(micros);
    }
  }
}

function classifyTask(seed: number): Task {
  const random = seededRandom(seed);
  const epoch = randomBytes(32);
  const tenant = {
    kid: 'bench',
    identityKey: randomBytes(32),
    durableKey: randomBytes(32),
    epochKey: () => epoch,
  } as unknown as Tenant;
  const tier = { https: true, ja4: null, hosting: null };
  const bundles = Array.from({ length: DEVICES }, () => {
    const { signals, headers } = makeDevice(random);
    const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
    const read: ReadSignals = readSignals(signals);
    return { read, tier: { ...tier, headers: Object.fromEntries(lower) } };
  });
  return makeTask((i) => {
    const bundle = bundles[i % DEVICES];
    if (!bundle) throw new Error('no bundle');
    const { facts, unusable } = readFacts(bundle.read, bundle.tier);
    const identity = identify(tenant, facts.signals, { agent: facts.agent, unusable, epoch: EPOCH });
    const { class: verdict } = classify(facts, DEFAULT_POLICY.rules);
    if (verdict !== 'human' || !identity) throw new Error(`an ordinary browser was taken for ${verdict}`);
  });
}

export function ecdhTask(): Task {
  const [ours, theirs] = [createECDH('prime256v1'), createECDH('prime256v1')];
  ours.generateKeys();
  const peer = theirs.generateKeys();
  return makeTask(() => ours.computeSecret(peer));
}

interface Signature {
  readonly base: Buffer;
  readonly signature: Buffer;
  readonly request: BotAuthRequest;
}

interface Agent {
  readonly key: KeyObject;
  readonly deps: BotAuthDeps;
  /** In the form that agents' libraries write. */
  readonly signed: readonly Signature[];
  /** The same in another form, which http-message-sig reads. */
  readonly reshaped: readonly Signature[];
}

/** By the letter of RFC 9421 section 2.5; a nonce each, as the drafts recommend, so that no two requests are alike. */
function signRequest(privateKey: KeyObject, keyid: string, created: number): Signature {
  const times = `created=${created};expires=${created + 300}`;
  const covered = '("@authority" "signature-agent";key="sig1")';
  const nonce = randomBytes(32).toString('base64');
  const input = `${covered};${times};nonce="${nonce}";keyid="${keyid}";tag="web-bot-auth"`;
  const lines = [
    `"@authority": ${HOST}`,
    '"signature-agent";key="sig1": "https://agent.example"',
    `"@signature-params": ${input}`,
  ];
  const base = Buffer.from(lines.join('\n'));
  const signature = sign(null, base, privateKey);
  const headers = {
    host: HOST,
    'user-agent': 'agent/1.0',
    'content-type': 'application/json',
    'signature-agent': 'sig1="https://agent.example"',
    'signature-input': `sig1=${input}`,
    signature: `sig1=:${signature.toString('base64')}:`,
  };
  return {
    base,
    signature,
    request: { method: 'POST', target: TARGET, https: true, headers, bundle: 'acme|nonce' },
  };
}

/** A blank more says the same. */
function reshape({ base, signature, request }: Signature): Signature {
  const input = String(request.headers['signature-input']).replace('=(', '=( ');
  return {
    base,
    signature,
    request: { ...request, headers: { ...request.headers, 'signature-input': input } },
  };
}

function makeAgent(nowSeconds: number): Agent {
  const { publicKey: key, privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = key.export({ format: 'jwk' });
  const members = `{"crv":"Ed25519","kty":"OKP","x":"${x}"}`;
  const keyid = createHash('sha256').update(members).digest('base64url');
  const cache = new Map([[`${DIRECTORY} ${keyid}`, key]]);
  const signed = Array.from({ length: SIGNATURES }, (_, i) =>
    signRequest(privateKey, keyid, nowSeconds - (i % 200)),
  );
  return {
    key,
    signed,
    reshaped: signed.map(reshape),
    deps: {
      policy: { authorities: () => [HOST], maxValiditySeconds: 86_400 },
      findKey: (directory, thumbprint) => cache.get(`${directory} ${thumbprint}`) ?? null,
      claimNonce: () => Promise.resolve(true),
    },
  };
}

function botAuthTask({ deps }: Agent, signed: readonly Signature[], now: number): Task {
  return makeTask(async (i) => {
    const one = signed[i % SIGNATURES];
    if (!one || (await verifyBotAuth(deps, one.request, now)) === null)
      throw new Error('a good signature was refused');
  });
}

function verifyTask({ key, signed }: Agent): Task {
  return makeTask((i) => {
    const one = signed[i % SIGNATURES];
    if (!one || !verify(null, one.base, key, one.signature)) throw new Error('a good signature was refused');
  });
}

export function ratioRow(name: string, unit: string, goal: number | null, pair: readonly [Task, Task]): Row {
  const [top, bottom] = pair;
  const details = { ours: median(top.micros), other: median(bottom.micros) };
  note(`${name}: ${details.ours.toFixed(1)} and ${details.other.toFixed(1)} µs`);
  return {
    name,
    value: pairedRatio(top.micros, bottom.micros),
    unit,
    goal: goal === null ? null : { atMost: goal },
    details,
  };
}

export async function benchClassify(plan: ClassifyPlan): Promise<Row[]> {
  const now = Date.now();
  const agent = makeAgent(Math.floor(now / 1000));
  const [classified, ecdh] = [classifyTask(plan.seed), ecdhTask()];
  const [plain, general] = [botAuthTask(agent, agent.signed, now), botAuthTask(agent, agent.reshaped, now)];
  const bare = verifyTask(agent);
  await runRounds([classified, ecdh, plain, bare, general], plan);
  return [
    {
      name: 'classify CPU per bundle',
      value: median(classified.micros),
      unit: 'µs',
      goal: { atMost: 40 },
      details: { rounds: classified.micros },
    },
    ratioRow('classify CPU to ECDH', 'x computeSecret', null, [classified, ecdh]),
    ratioRow('Web Bot Auth CPU', 'x crypto.verify', 1.3, [plain, bare]),
    ratioRow('Web Bot Auth CPU, unusual form', 'x crypto.verify', null, [general, bare]),
  ];
}
