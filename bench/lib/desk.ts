import { createHash } from 'node:crypto';
import { hashSecret } from '../../src/auth/credentials.ts';
import { loadConfig } from '../../src/config.ts';
import type { Database } from '../../src/db/db.ts';
import { type Bindings, insertMany } from '../../src/db/sql.ts';
import { DAY, HOUR } from '../../src/lib/clock.ts';
import { NO_TEXTS } from '../../src/rights/contests/contest.ts';
import { tally } from '../../src/rights/tally-store.ts';
import { createServices, loadTenants } from '../../src/services.ts';
import { note } from './report.ts';
import type { Rig } from './rig.ts';

/** An installation with contests and decisions, and somebody who is signed in at its console. */

export interface DeskSize {
  readonly contests: number;
  readonly decisions: number;
}

const KID = 'bench';
export const TOKEN = 'a'.repeat(43);
export const CSRF = 'c'.repeat(43);
export const ACTOR = 'r'.repeat(43);
const CHUNK = 5000;
const DAYS = 30;
/** The epoch of now, so that retention leaves the visitor ids. */
const EPOCH = Math.floor(Date.now() / (DAYS * DAY));
const CLASSES = ['human', 'undeclared_automation', 'unknown', 'declared_agent'];

/** ULID-like: sorted by number, 26 characters of its alphabet. */
export const id = (prefix: string, i: number): string => `${prefix}_01KAG${String(i).padStart(21, '0')}`;
export const hash = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** As large as a real one: what is read and parsed is what costs. */
function verdictOf(i: number, decidedAt: number, durable: string): string {
  const rules = ['A1', 'A2', 'T9', 'W4'].map((rule) => ({ id: rule, weight: 0.3, kind: 'A' }));
  return JSON.stringify({
    requestId: id('req', i),
    decidedAt,
    class: CLASSES[i % 4],
    durable,
    epoch: EPOCH,
    confidence: 0.6,
    suspectScore: 0.9,
    smartSignals: { bot: true, incognito: false, tampered: false, inconsistency: 1 },
    needsAttestation: false,
    declaredAgentId: null,
    consentState: {
      purposes: ['device-identification'],
      gpc: false,
      gpcSource: 'none',
      version: 3,
      issuedAt: decidedAt,
      basis: 'asserted',
    },
    rules,
    defenses: [],
    overridden: false,
    monitor: false,
    incomplete: false,
    policyVersion: '2026-11-20.6',
  });
}

const DECISIONS =
  'INSERT INTO decisions (kid, request_id, decided_at, class, durable, verdict, salt, commitment)';
const SIGHTINGS = 'INSERT INTO sightings (kid, durable, first_at, last_at, seen)';
const INDEX = 'INSERT INTO visitor_index (kid, visitor_id, durable, epoch, ends_at)';
const CONTESTS = `INSERT INTO contests (kid, contest_id, request_id, durable, filed_by, sealed, filed_at, due_at, status, version,
  class, outcome, resolved_at, resolved_role, resolved_by, claimed_by, claimed_label, claimed_until)`;
const AUDIT = 'INSERT INTO audit_log (kid, at, role, actor, action, object, detail, salt, commitment)';

async function inChunks(
  database: Database,
  count: number,
  head: string,
  row: (i: number) => Bindings,
): Promise<void> {
  for (let start = 0; start < count; start += CHUNK) {
    const rows = Array.from({ length: Math.min(CHUNK, count - start) }, (_, i) => row(start + i));
    await database.transaction((tx) => insertMany(tx, head, rows));
  }
}

/** @returns the data directory */
export async function seedDesk(
  rig: Rig,
  name: string,
  size: DeskSize,
  chance: () => number,
): Promise<string> {
  note(`console: writing ${size.decisions} decisions and ${size.contests} contests`);
  const data = rig.freshData(`console-${name}`);
  const config = loadConfig({ environment: { GPD_DATA_DIR: data }, flags: {} });
  const services = await createServices(config);
  await loadTenants(services);
  const { database } = services;
  const words = services.rights.contestTexts;
  const now = Date.now();
  const devices = Math.max(50, Math.floor(size.decisions / 5));
  const durableOf = (i: number): string => hash(`device ${i % devices}`);
  const step = (DAYS * DAY) / size.decisions;
  await inChunks(database, size.decisions, DECISIONS, (i) => {
    const at = Math.floor(now - DAYS * DAY + i * step);
    const durable = durableOf(i);
    return [
      KID,
      id('req', i),
      at,
      CLASSES[i % 4] ?? '',
      durable,
      verdictOf(i, at, durable),
      'salt',
      hash(`c${i}`),
    ];
  });
  await inChunks(database, devices, SIGHTINGS, (i) => [KID, durableOf(i), now - DAY, now, 5]);
  await inChunks(database, devices, INDEX, (i) => [
    KID,
    hash(`visitor ${i}`).slice(0, 22),
    durableOf(i),
    EPOCH,
    (EPOCH + 1) * DAYS * DAY,
  ]);
  await inChunks(database, size.contests, CONTESTS, (i) => {
    const filedAt = Math.floor(now - 45 * DAY * chance());
    const open = i % 2 === 0;
    // As many as a few dozen people hold at a time.
    const held = open && i % Math.max(10, Math.floor(size.contests / 200)) === 0;
    const resolved = open ? [null, null, null, null] : ['upheld', now - i, 'reviewer', ACTOR];
    const reason = open ? null : 'because of what was seen';
    const claim = held
      ? [chance() < 0.1 ? ACTOR : hash('other'), 'Somebody', now + HOUR]
      : [null, null, null];
    const text = 'I am a person and I was taken for a machine. '.repeat(4);
    const [outcome, at, role, by] = resolved;
    const head = [
      KID,
      id('con', i),
      id('req', i),
      durableOf(i),
      hash(`s${i}`),
      words.encrypt(KID, id('con', i), { ...NO_TEXTS, statement: text, reason }),
      filedAt,
      filedAt + 30 * DAY,
    ];
    return [
      ...head,
      open ? 'open' : 'resolved',
      1,
      CLASSES[i % 4] ?? '',
      outcome,
      at,
      role,
      by,
      ...claim,
    ] as Bindings;
  });
  await inChunks(database, size.contests * 3, AUDIT, (i) => {
    const actions = ['contest.filed', 'contest.claimed', 'contest.resolved'];
    return [
      KID,
      now - i,
      'reviewer',
      i % 7 === 0 ? ACTOR : hash(`a${i % 20}`),
      actions[i % 3] ?? '',
      hash(`o${i % size.contests}`),
      '{}',
      's',
      hash(`l${i}`),
    ];
  });
  await database.transaction(async (tx) => {
    await tx('console_sessions').insert({
      hash: hashSecret(TOKEN),
      kid: KID,
      actor: ACTOR,
      label: 'Bench',
      roles: 'reviewer dpo',
      csrf: CSRF,
      created_at: now,
      seen_at: now,
      expires_at: now + 8 * HOUR,
    });
  });
  const start = performance.now();
  await tally(database, KID, now);
  note(`console: counting them took ${((performance.now() - start) / 1000).toFixed(1)} s, once`);
  await database.close();
  return data;
}
