import { beforeAll, describe, expect, it } from 'vitest';
import { dueIn } from '../../src/console/words.ts';
import { HOUR } from '../../src/lib/clock.ts';
import { runGpd } from '../support/command.ts';
import { KID, OTHER, REASON } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { expectError } from '../support/expect.ts';
import { initGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { apiKey, startRights, type Visit } from './support/rights.ts';

const rights = started(() => startRights());
let secret: string;
beforeAll(async () => {
  secret = await apiKey(rights, 'secret');
});

const cli = (...args: string[]) => rights.gpd.cli([...args, '--json']);

const subjectOf = ({ visitorId }: Visit): Promise<string> =>
  rights.as({ gpd_role: 'subject', gpd_visitor: visitorId });

async function contested(statement?: string, bot = true): Promise<{ visit: Visit; contestId: string }> {
  const visit = await rights.visit({ bot });
  const body = { requestId: visit.requestId, ...(statement && { statement }) };
  const reply = await rights.call('/privacy/contest', body, await subjectOf(visit));
  return { visit, contestId: (reply.json() as { contestId: string }).contestId };
}

/** The flags of a ruling, which resolves the contest with --yes. */
const rule = (contestId: string, outcome = 'overturned'): string[] => [
  'contests',
  'resolve',
  contestId,
  '--outcome',
  outcome,
  '--reason',
  REASON,
];

const listedLine = async (contestId: string): Promise<string> => {
  const { stdout } = await rights.gpd.cli(['contests', 'list', '--tenant', KID]);
  return stdout.split('\n').find((row) => row.startsWith(contestId)) ?? '';
};

describe('gpd contests', () => {
  it('lists what waits, shows why, and resolves it', async () => {
    await rights.sql('DELETE FROM contests');
    const { visit, contestId } = await contested('a\u202eb');
    const list = () => rights.gpd.json(['contests', 'list', '--tenant', KID]);
    expect(await list()).toMatchObject([{ contestId, tenant: KID, status: 'open' }]);
    const shown = await rights.gpd.json(['contests', 'show', contestId]);
    expect(shown).toMatchObject({
      contestId,
      decision: { requestId: visit.requestId, class: 'undeclared_automation' },
    });
    const plainText = await rights.gpd.cli(['contests', 'show', contestId]);
    expect(plainText.stdout).toContain('the result would have been');
    expect(plainText.stdout).not.toContain('\u202e');
    const meaning = 'the decision no longer stands; it will count as a person';
    const dry = await rights.gpd.json([...rule(contestId), '--dry-run']);
    expect(dry).toMatchObject({ contestId, outcome: 'overturned', meaning, dryRun: true });
    expect(await rights.gpd.json(['contests', 'show', contestId])).toMatchObject({ status: 'open' });
    expect(await rights.gpd.json([...rule(contestId), '--yes'])).toMatchObject({
      status: 'resolved',
      outcome: 'overturned',
      resolvedBy: { role: 'operator' },
    });
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject({ class: 'human' });
    expect(await list()).toEqual([]);
  });

  it('warns, where the id is shared, that one ruling holds for all who look alike', async () => {
    const { contestId, visit } = await contested();
    expect((await cli('contests', 'show', contestId)).stderr).toBe('');
    expect((await cli(...rule(contestId), '--dry-run')).stderr).toBe('');
    await rights.sql(
      `UPDATE decisions SET verdict = json_set(verdict, '$.needsAttestation', json('true')) WHERE request_id = '${visit.requestId}'`,
    );
    expect((await cli('contests', 'show', contestId)).stderr).toMatch(/other devices look like it/);
    const unconfirmed = await cli(...rule(contestId));
    expect(unconfirmed).toMatchObject({ code: 2, stdout: '' });
    expect(unconfirmed.stderr).toMatch(/other devices.*\n.*for every device that looks like it.*--yes/);
    const resolved = await cli(...rule(contestId), '--yes');
    expect(resolved).toMatchObject({ code: 0, stderr: expect.stringMatching(/one ruling holds/) as string });
    expect(JSON.parse(resolved.stdout)).toMatchObject({ status: 'resolved' });
  });

  it('lists every one, however many wait', async () => {
    const { contestId } = await contested();
    const copied = 'kid, durable, filed_by, filed_at, due_at + i, status, version, class';
    await rights.sql(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
        INSERT INTO contests (contest_id, request_id, kid, durable, filed_by, filed_at, due_at, status, version, class)
        SELECT 'con_many' || i, 'req_many' || i, ${copied} FROM contests, n WHERE contest_id = '${contestId}'`,
    );
    const list = await rights.gpd.json<{ contestId: string }[]>(['contests', 'list', '--tenant', KID]);
    expect(new Set(list.map((contest) => contest.contestId)).size).toBeGreaterThan(1500);
    await rights.sql("DELETE FROM contests WHERE contest_id LIKE 'con_many%'");
  });

  it('says when each is due in the words of the console, overdue ones too', async () => {
    const { contestId } = await contested();
    for (const hours of [29 * 24 + 23.5, 1.5, -0.5, -23.5, -30]) {
      const dueAt = Date.now() + hours * HOUR;
      await rights.sql(`UPDATE contests SET due_at = ${dueAt} WHERE contest_id = '${contestId}'`);
      expect(await listedLine(contestId)).toContain(` ${dueIn(dueAt, Date.now()).text} `);
    }
  });

  it.each<[string, (id: string) => string[], number]>([
    ['a short reason', (id) => ['resolve', id, '--outcome', 'upheld', '--reason', 'no', '--yes'], 2],
    ['nobody to ask', (id) => ['resolve', id, '--outcome', 'upheld', '--reason', REASON], 2],
    ['an unknown contest', () => ['show', 'con_x'], 3],
    ['an unknown contest to claim', () => ['claim', 'con_x'], 3],
    ['an unknown tenant', () => ['list', '--tenant', 'nobody'], 3],
    ['62 days', (id) => ['extend', id, '--reason', REASON, '--days', '62'], 2],
    ['no days', (id) => ['extend', id, '--reason', REASON, '--days', '0'], 2],
    ['half days', (id) => ['extend', id, '--reason', REASON, '--days', '1.5'], 2],
    ['an empty reason', (id) => ['extend', id, '--reason', ' ', '--days', '5'], 2],
    ['no question', (id) => ['ask', id, '--question', ''], 2],
  ])('%s: exit code', async (_what, args, code) => {
    const { contestId } = await contested();
    expect((await cli('contests', ...args(contestId))).code).toBe(code);
  });

  it('says of a human decision that nothing is overturned', async () => {
    const { visit, contestId } = await contested(undefined, false);
    expect(visit.answer.class).toBe('human');
    const meaning = 'the objection is right; the decision said “a person”, and it stays that';
    expect((await rights.gpd.cli([...rule(contestId), '--dry-run'])).stdout).toContain(meaning);
    expect(await rights.gpd.json([...rule(contestId), '--yes'])).toMatchObject({ meaning });
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject({ class: 'human' });
  });

  it('extends once, with a reason that the person reads, and everybody counts from the new date', async () => {
    const { visit, contestId } = await contested();
    const args = ['contests', 'extend', contestId, '--reason', 'A second expert looks.', '--days', '30'];
    const { dueAt, extendedTo } = await rights.gpd.json<{ dueAt: string; extendedTo: string }>(args);
    expect(Date.parse(extendedTo) - Date.parse(dueAt)).toBe(30 * 24 * HOUR);
    expect((await cli(...args)).code).toBe(7);
    expect((await rights.call('/privacy/dsar', {}, await subjectOf(visit))).json()).toMatchObject({
      contests: [{ dueAt, extendedTo, extensionReason: 'A second expert looks.' }],
    });
    expect(await listedLine(contestId)).toMatch(/due in (58|59|60) days/);
    const [audit] = await rights.gpd.json<object[]>(['audit', KID, '--action', 'contest.extended']);
    expect(audit).toMatchObject({ role: 'operator', detail: { days: 30 } });
    const { stdout } = await rights.gpd.cli(['audit', KID, '--json']);
    expect(stdout).not.toContain('expert');
  });

  it('asks and claims', async () => {
    const { contestId } = await contested();
    const contest = await rights.gpd.json(['contests', 'ask', contestId, '--question', 'Which browser?']);
    expect(contest).toMatchObject({ contestId, question: 'Which browser?', status: 'open' });
    expect(await rights.gpd.json(['contests', 'claim', contestId])).toMatchObject({ contestId });
    expect((await listedLine(contestId)).trimEnd()).toMatch(/automation\s+\S+$/);
  });
});

describe('gpd rights register', () => {
  it('lists contests, erasures and exports, as a table, JSON and CSV', async () => {
    const { contestId, visit } = await contested('=cmd()');
    const other = await rights.visit();
    const erased = await cli('erase', '--tenant', KID, '--visitor', other.visitorId, '--yes');
    const { receiptId } = JSON.parse(erased.stdout) as { receiptId: string };
    await rights.call('/privacy/dsar', {}, await subjectOf(visit));
    const rows = await rights.gpd.json<{ kind: string; number: string }[]>(['rights', 'register', KID]);
    const numbered = (id: string) => rows.find(({ number }) => number === id);
    const contest = { kind: 'contest', state: 'open', askedBy: 'account', extendedTo: null };
    expect(numbered(contestId)).toMatchObject(contest);
    expect(numbered(receiptId)).toMatchObject({ kind: 'erasure', askedBy: 'operator' });
    expect(rows.some(({ kind }) => kind === 'export')).toBe(true);
    const { stdout } = await rights.gpd.cli(['rights', 'register', KID, '--csv']);
    const lines = stdout.trimEnd().split('\r\n');
    expect(lines[0]).toBe(
      'kind,number,receivedAt,dueAt,extendedTo,state,doneAt,askedBy,pausedFrom,pausedTo,acknowledgedAt',
    );
    expect(lines).toHaveLength(rows.length + 1);
    expect((await rights.gpd.cli(['rights', 'register', KID])).stdout).toContain(contestId);
    for (const secret of [visit.requestId, visit.visitorId, 'cmd()']) expect(stdout).not.toContain(secret);
    expect((await cli('rights', 'register', 'nobody')).code).toBe(3);
  });
});

describe('gpd erase', () => {
  it('shows first what would be deleted, then erases and prints the receipt', async () => {
    const visit = await rights.visit();
    const args = ['erase', '--tenant', KID, '--visitor', visit.visitorId];
    const planned = { dryRun: true, devices: 1, decisions: 1 };
    expect(JSON.parse((await cli(...args, '--dry-run')).stdout)).toMatchObject(planned);
    expect((await rights.decision(visit.requestId, secret)).status).toBe(200);
    const unconfirmed = await cli(...args);
    expect(unconfirmed.code).toBe(2);
    expect(unconfirmed.stderr).toContain('--yes');
    const erased = await cli(...args, '--yes');
    expect(erased.code).toBe(0);
    const receipt = JSON.parse(erased.stdout) as { receiptId: string };
    expect(receipt).toMatchObject({ requestedBy: 'operator', tenant: KID, incomplete: false });
    expectError(await rights.decision(visit.requestId, secret), 'no-such-decision');
    expect(await rights.gpd.json(['erase', 'status', receipt.receiptId])).toEqual(receipt);
    expect((await rights.gpd.json<object[]>(['erase', 'list', KID]))[0]).toEqual(receipt);
    const [audit] = await rights.gpd.json<object[]>(['audit', KID, '--action', 'subject.erased']);
    expect(audit).toMatchObject({ role: 'operator', detail: { receiptId: receipt.receiptId } });
    expect((await cli('audit', KID, '--action', 'coffee')).code).toBe(2);
    expect((await cli('audit', 'nobody')).code).toBe(3);
  });

  it.each<[string, string[], number]>([
    ['nobody named', ['--tenant', KID, '--yes'], 2],
    ['two named', ['--tenant', KID, '--visitor', 'x', '--request', 'y', '--yes'], 2],
    ['an unknown tenant', ['--tenant', 'nobody', '--visitor', 'x', '--yes'], 3],
    ['an unknown visitor', ['--tenant', KID, '--visitor', 'x', '--yes'], 3],
    ['an unknown request', ['--tenant', KID, '--request', 'req_x', '--yes'], 3],
  ])('%s: exit code', async (_what, args, code) => {
    expect((await cli('erase', ...args)).code).toBe(code);
  });

  it('an unknown id gets no receipt, and one with a session alone is known', async () => {
    const count = async () => (await rights.gpd.json<object[]>(['erase', 'list', KID])).length;
    const before = await count();
    const ran = await rights.gpd.cli(['erase', '--tenant', KID, '--principal', 'nobody', '--yes']);
    expect(ran).toMatchObject({ code: 3, stdout: '' });
    expect(ran.stderr).toMatch(/holds nothing under that id; nothing was changed/);
    expect(await count()).toBe(before);
    await rights.call('/v1/sessions', { principalId: 'only-signed-in' }, secret);
    for (const code of [0, 3])
      expect((await cli('erase', '--tenant', KID, '--principal', 'only-signed-in', '--yes')).code).toBe(code);
  });

  it('refuses another tenant’s request, and an unknown receipt', async () => {
    const visit = await rights.visit();
    expect((await cli('erase', '--tenant', OTHER, '--request', visit.requestId, '--yes')).code).toBe(4);
    expect((await cli('erase', 'status', 'era_x')).code).toBe(3);
  });

  it('names a receipt that cannot be read, after it did what it could with the others', async () => {
    const { visitorId } = await rights.visit();
    expect((await cli('erase', '--tenant', KID, '--visitor', visitorId, '--yes')).code).toBe(0);
    const at = Date.now() - 10_000;
    await rights.sql(
      `INSERT INTO erasures (receipt_id, kid, subject, requested_by, erased_at, scopes, refs, state)
        VALUES ('era_damaged', '${KID}', 's', 'dpo', ${at}, '[{"private', '{}', 'open')`,
    );
    const resumed = await cli('erase', 'resume');
    expect(JSON.parse(resumed.stdout)).toEqual({ resumed: 1, incomplete: 1 });
    const listed = await cli('erase', 'list', KID);
    expect((JSON.parse(listed.stdout) as object[]).length).toBeGreaterThan(0);
    const status = await cli('erase', 'status', 'era_damaged');
    for (const { code, stderr } of [resumed, listed, status]) {
      expect(code).toBe(1);
      expect(stderr).toMatch(/era_damaged/);
      expect(stderr).not.toContain('private');
    }
    await rights.sql("DELETE FROM erasures WHERE receipt_id = 'era_damaged'");
  });
});

describe('gpd retention run', () => {
  it('takes what is older than the tenant keeps, except under an open contest, and the log still verifies', async () => {
    const { visit, contestId } = await contested();
    const old = await rights.visit();
    const recentVisit = await rights.visit();
    const then = Date.now() - 91 * 86_400_000;
    const ids = `'${visit.requestId}', '${old.requestId}'`;
    await rights.sql(
      `UPDATE decisions SET decided_at = ${then} WHERE request_id IN (${ids})`,
      `UPDATE sightings SET last_at = ${then} WHERE durable IN (SELECT durable FROM decisions WHERE request_id IN (${ids}))`,
    );
    const plan = await rights.gpd.json(['retention', 'run', '--dry-run']);
    expect((await rights.decision(old.requestId, secret)).status).toBe(200);
    const run = ['retention', 'run', '--yes'];
    const rows = await rights.gpd.json<{ kid: string; decisions: number }[]>(run);
    expect(rows).toEqual(plan);
    expect(rows.find(({ kid }) => kid === KID)).toMatchObject({
      decisions: 1,
      // The device of the contest keeps both.
      sightings: 1,
      visitorIndex: 1,
    });
    expectError(await rights.decision(old.requestId, secret), 'no-such-decision');
    expect((await rights.decision(recentVisit.requestId, secret)).status).toBe(200);
    expect((await rights.decision(visit.requestId, secret)).status).toBe(200);
    await cli(...rule(contestId, 'upheld'), '--yes');
    await rights.gpd.json(['retention', 'run']);
    expectError(await rights.decision(visit.requestId, secret), 'no-such-decision');
    expect(await rights.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });
});

describe('a failure of the database', () => {
  it('is reported in its own words, without the statement and its ids', async () => {
    const { dataDir } = await initGpd();
    await execute(dataDir, 'ALTER TABLE visitor_index RENAME TO elsewhere');
    const env = { GPD_DATA_DIR: dataDir };
    const ran = await runGpd(['erase', '--tenant', KID, '--visitor', 'somebodys-id', '--yes'], { env });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('no such table');
    expect(ran.stderr).not.toMatch(/somebodys-id|select/i);
  });
});
