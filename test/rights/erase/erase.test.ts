import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import sqlite3 from 'sqlite3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ERASURE_SCOPES } from '../../../src/schema/rights.ts';
import { tempDir } from '../../support/command.ts';
import { KID, ORIGIN, REASON } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { desktopChrome } from '../../support/samples.ts';
import { apiKey, keepSummaries, type Rights, startRights, type Visit } from '../support/rights.ts';

/** An erasure leaves no byte: every id of the subject is looked for in every file of the data directory. */

let rights: Rights;
let secret: string;
beforeAll(async () => {
  rights = await startRights();
  secret = await apiKey(rights, 'secret');
  await keepSummaries(rights);
  await rights.gpd.json(['webhooks', 'add', KID, 'http://127.0.0.1:9/x', '--allow-private']);
});
afterAll(() => rights.stop());

interface Receipt {
  readonly receiptId: string;
  readonly scopes: readonly { readonly scope: string; readonly action: string; readonly count: number }[];
  readonly incomplete: boolean;
  readonly [more: string]: unknown;
}

const filesOf = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile());

/** @returns each id that a file contains in the clear, with the path of the file */
function found(ids: readonly string[], { gpd } = rights): string[] {
  return filesOf(gpd.dataDir).flatMap((path) => {
    const bytes = readFileSync(path);
    return ids.filter((id) => bytes.includes(id)).map((id) => `${id} in ${path}`);
  });
}

async function durableOf(visit: Visit, at: Rights): Promise<string> {
  const rows = await at.sql(`SELECT durable FROM decisions WHERE request_id = '${visit.requestId}'`);
  return String(rows[0]?.['durable']);
}

const subject = (visit: Visit, sub: string, at = rights): Promise<string> =>
  at.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });

interface Person {
  readonly visit: Visit;
  readonly ids: readonly string[];
  readonly token: string;
  readonly sub: string;
}

/** Somebody with a row in every store. */
async function createPerson(sub: string, at = rights, key = secret): Promise<Person> {
  const device = Buffer.from(sub.padEnd(16, '.')).toString('hex').slice(0, 32);
  const first = await at.visit({ device, bot: true });
  const visit = await at.visit({ device, bot: true });
  const token = await subject(visit, sub, at);
  const file = await at.call(
    '/privacy/contest',
    { requestId: first.requestId, statement: `by ${sub}` },
    token,
  );
  const { contestId } = file.json() as { contestId: string };
  const reviewer = await at.as({ gpd_role: 'reviewer', sub: 'rita' });
  const ruling = { contestId, outcome: 'overturned', reason: REASON };
  expect((await at.call('/privacy/contest/resolve', ruling, reviewer)).status).toBe(200);
  await at.call('/privacy/contest', { requestId: visit.requestId }, token);
  const session = (await at.call('/v1/sessions', { principalId: sub }, key)).json() as {
    token: string;
  };
  const browser = { cookie: `gp_session=${visit.session}`, origin: ORIGIN };
  const link = await at.call('/v1/principals/link', { token: visit.token }, session.token, browser);
  expect(link.status).toBe(201);
  const grant = { principalId: sub, purposes: ['device-identification'] };
  expect((await at.call('/v1/consent/grant', grant, key)).status).toBe(201);
  const ids = [visit.visitorId, first.requestId, visit.requestId, contestId, await durableOf(visit, at)];
  return { visit, ids, token, sub };
}

const actions = (receipt: Receipt): Record<string, string> =>
  Object.fromEntries(receipt.scopes.map(({ scope, action }) => [scope, action]));

describe('a subject’s erasure', () => {
  it('takes every store, and leaves no byte of any id in any file', async () => {
    const person = await createPerson('person-one');
    // The negative control: the same search finds them before.
    expect(found(person.ids).length).toBeGreaterThanOrEqual(person.ids.length);
    const reply = await rights.call('/privacy/erase', {}, person.token);
    expect(reply.status).toBe(200);
    const receipt = reply.json() as Receipt;
    expect(receipt.scopes.map(({ scope }) => scope)).toEqual([...ERASURE_SCOPES]);
    expect(actions(receipt)).toEqual({
      sightings: 'erased',
      'visitor-index': 'erased',
      decisions: 'erased',
      contests: 'erased',
      override: 'erased',
      links: 'erased',
      'signal-summaries': 'erased',
      'network-marks': 'erased',
      credentials: 'none',
      consent: 'retained',
      backups: 'none',
      storage: 'erased',
    });
    expect(receipt).toMatchObject({ tenant: KID, requestedBy: 'subject', incomplete: false });
    expect(found(person.ids)).toEqual([]);
    expect(found([person.sub])).toEqual([]);
    for (const id of [...person.ids, person.sub]) expect(reply.text).not.toContain(id);
  });

  it('again erases nothing, and says so', async () => {
    const person = await createPerson('person-two');
    await rights.call('/privacy/erase', {}, person.token);
    const again = (await rights.call('/privacy/erase', {}, person.token)).json() as Receipt;
    const { consent, ...otherActions } = actions(again);
    expect(new Set(Object.values(otherActions))).toEqual(new Set(['none']));
    // The evidence of consent is held still, and the receipt does not deny it.
    expect(consent).toBe('retained');
    expect(again.incomplete).toBe(false);
    expectError(
      await rights.call('/privacy/contest', { requestId: person.visit.requestId }, person.token),
      'no-such-decision',
    );
  });

  it('leaves no byte and a whole log under load, of 20 people among others', async () => {
    const people: Person[] = [];
    for (let i = 0; i < 20; i += 1) people.push(await createPerson(`loaded-${i}`));
    let running = true;
    let visits = 0;
    const load = [1, 2, 3].map(async () => {
      while (running) {
        const { answer } = await rights.visit();
        expect(answer.reason).toBe('ok');
        visits += 1;
      }
    });
    // A busy machine may answer 503, which says that nothing was erased.
    const erased = people.map(({ token }) =>
      expect.poll(async () => (await rights.call('/privacy/erase', {}, token)).status).toBe(200),
    );
    await Promise.all(erased);
    running = false;
    await Promise.all(load);
    expect(visits).toBeGreaterThan(2);
    // An answer waits two seconds for the search, and on a busy machine it may take longer.
    await expect.poll(() => rights.sql("SELECT receipt_id FROM erasures WHERE step <> 'done'")).toEqual([]);
    expect(found(people.flatMap(({ ids }) => ids))).toEqual([]);
    // Erased verdicts of sealed hours are missed by nobody.
    expect(await rights.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });
});

describe('what people write', () => {
  it('stands in no file in the clear, and is read by the subject and by staff', async () => {
    const visit = await rights.visit({ bot: true });
    const token = await subject(visit, 'writer');
    const body = { requestId: visit.requestId, statement: 'I walk with a screen reader.' };
    const { contestId } = (await rights.call('/privacy/contest', body, token)).json() as {
      contestId: string;
    };
    const reason = 'The reader of the screen explains what was seen here.';
    const ruling = { contestId, outcome: 'overturned', reason };
    const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
    expect((await rights.call('/privacy/contest/resolve', ruling, reviewer)).json()).toMatchObject({
      statement: body.statement,
      reason,
    });
    expect(found([body.statement, reason])).toEqual([]);
    const { contests } = (await rights.call('/privacy/dsar', {}, token)).json() as { contests: object[] };
    expect(contests).toMatchObject([{ statement: body.statement, reason }]);
    const shown = await rights.gpd.json(['contests', 'show', contestId]);
    expect(shown).toMatchObject({ statement: body.statement, reason });
  });
});

describe('a dpo’s erasure', () => {
  const dpo = (): Promise<string> => rights.as({ gpd_role: 'dpo', sub: 'dora' });

  it.each([
    ['visitorId', (person: Person) => ({ visitorId: person.visit.visitorId })],
    ['requestId', (person: Person) => ({ requestId: person.visit.requestId })],
    ['durableId', (person: Person) => ({ durableId: `${KID}|${person.ids.at(-1)}` })],
  ] as const)('by %s reaches the device', async (name, target) => {
    const person = await createPerson(`by-${name}`);
    const receipt = (await rights.call('/privacy/erase', target(person), await dpo())).json() as Receipt;
    expect(receipt).toMatchObject({ requestedBy: 'dpo', incomplete: false });
    expect(actions(receipt)).toMatchObject({ decisions: 'erased', contests: 'erased', override: 'erased' });
    expect(found(person.ids)).toEqual([]);
  });

  it('by principalId reaches the linked requests and shreds the consent', async () => {
    const person = await createPerson('by-principal');
    const receipt = (
      await rights.call('/privacy/erase', { principalId: person.sub }, await dpo())
    ).json() as Receipt;
    expect(actions(receipt)).toMatchObject({ decisions: 'erased', links: 'erased', consent: 'erased' });
    expect(found([person.visit.requestId])).toEqual([]);
    const check = { principalId: person.sub, purpose: 'device-identification' };
    const answer = (await rights.call('/v1/consent/can-process', check, secret)).json();
    expect(answer).toMatchObject({ allowed: false, reason: 'erased' });
  });
});

describe('who else there is', () => {
  it('a request whose id other people may share is erased and exported alone', async () => {
    const signals = desktopChrome('e'.repeat(32));
    Object.assign(signals['graphics'] as object, { renderer: 'Google SwiftShader' });
    const theirs = await rights.visit({ signals });
    const mine = await rights.visit({ signals });
    expect(mine.answer.needsAttestation).toBe(true);
    const file = join(tempDir('shared'), 'shared.zip');
    const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
    const out = ['dsar', 'export', '--tenant', KID, '--request', mine.requestId, '--out', file];
    expect(await rights.gpd.json(out)).toMatchObject({ decisions: 1 });
    const reply = await rights.call('/privacy/erase', { requestId: mine.requestId }, dpo);
    expect(actions(reply.json() as Receipt)).toMatchObject({ decisions: 'erased', sightings: 'none' });
    expectError(await rights.decision(mine.requestId, secret), 'no-such-decision');
    expect((await rights.decision(theirs.requestId, secret)).status).toBe(200);
  });

  it('a subject’s receipt tells of the consent evidence that stays, links or none', async () => {
    const visit = await rights.visit();
    const grant = { principalId: 'witness', purposes: ['device-identification'] };
    expect((await rights.call('/v1/consent/grant', grant, secret)).status).toBe(201);
    const claims = { gpd_role: 'subject', sub: 'witness', gpd_visitor: visit.visitorId };
    const receipt = (await rights.call('/privacy/erase', {}, await rights.as(claims))).json() as Receipt;
    expect(actions(receipt)).toMatchObject({ decisions: 'erased', consent: 'retained' });
  });
});

describe('what stands in the way', () => {
  it('a reader of another process makes it incomplete, and a resume completes it', async () => {
    const person = await createPerson('held-open');
    const reader = new sqlite3.Database(join(rights.gpd.dataDir, 'gpd.db'), sqlite3.OPEN_READONLY);
    const run = (sql: string) =>
      new Promise<void>((resolve, reject) => reader.all(sql, (error) => (error ? reject(error) : resolve())));
    await run('BEGIN');
    await run('SELECT COUNT(*) FROM decisions');
    const receipt = (await rights.call('/privacy/erase', {}, person.token)).json() as Receipt;
    expect(receipt.incomplete).toBe(true);
    expect(actions(receipt)).toMatchObject({ decisions: 'pending' });
    const pending = await rights.gpd.cli(['erase', 'status', receipt.receiptId, '--json']);
    expect(pending.code).toBe(5);
    await run('COMMIT');
    await new Promise<void>((resolve) => reader.close(() => resolve()));
    // On a busy machine the server itself may be reading while the command empties the log: then it asks to be repeated.
    await vi.waitFor(async () => expect((await rights.gpd.cli(['erase', 'resume', '--json'])).code).toBe(0), {
      timeout: 60_000,
      interval: 500,
    });
    const status = await rights.gpd.json<Receipt>(['erase', 'status', receipt.receiptId]);
    expect(status.incomplete).toBe(false);
    expect(actions(status)).toMatchObject({ decisions: 'erased' });
    expect(found(person.ids)).toEqual([]);
  });

  it('a backup keeps what it has, sealed, and the receipt says so', async () => {
    const ownRights = await startRights();
    const person = await createPerson('backed-up', ownRights, await apiKey(ownRights, 'secret'));
    const file = join(ownRights.gpd.dataDir, 'nightly.backup');
    expect((await ownRights.gpd.cli(['backup', file])).code).toBe(0);
    const receipt = (await ownRights.call('/privacy/erase', {}, person.token)).json() as Receipt;
    expect(receipt.incomplete).toBe(false);
    expect(receipt.scopes.find(({ scope }) => scope === 'backups')).toMatchObject({
      action: 'retained',
      basis: expect.stringContaining('restore') as string,
    });
    expect(found([...person.ids, person.sub], ownRights)).toEqual([]);
    // An erasure that deleted nothing needs no tombstone, because no backup can bring anything back.
    const dpo = await ownRights.as({ gpd_role: 'dpo', sub: 'dora' });
    const nobody = (await ownRights.call('/privacy/erase', { visitorId: 'unknown' }, dpo)).json() as Receipt;
    expect(new Set(Object.values(actions(nobody)))).toEqual(new Set(['none']));
    await ownRights.stop();
  });

  it('a tombstone stands outside the database, and names nobody', async () => {
    const person = await createPerson('tombstone');
    const receipt = (await rights.call('/privacy/erase', {}, person.token)).json() as Receipt;
    const path = join(rights.gpd.dataDir, 'erasures.log');
    expect(existsSync(path)).toBe(true);
    expect(statSync(path).mode & 0o077).toBe(0);
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    const line = lines
      .map((text) => JSON.parse(text) as { receiptId: string })
      .find(({ receiptId }) => receiptId === receipt.receiptId);
    expect(line).toMatchObject({ v: 1, tenant: KID, refs: [{ kind: 'durable' }, { kind: 'request' }] });
    expect(found([...person.ids, person.sub])).toEqual([]);
  });
});
