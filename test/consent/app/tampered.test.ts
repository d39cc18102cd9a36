import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { appendLeaves, EMPTY_FRONTIER, encodeFrontier } from '../../../src/ledger/merkle.ts';
import { chunksOf } from '../../../src/lib/collections.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { started } from '../../support/started.ts';
import { startApi } from './support/api.ts';
import { readCheckpoint } from './support/naive-log.ts';

/** A withdrawal that somebody takes out of the log by SQL alone: the running server, verify and doctor. */

const api = started(() => startApi());

const sql = (...statements: string[]) => execute(api.gpd.dataDir, ...statements);

async function verify(
  ...args: string[]
): Promise<{ readonly code: number | null; readonly codes: string[] }> {
  const { code, stdout } = await api.gpd.cli(['consent', 'verify', KID, '--json', ...args]);
  const { ok, problems } = JSON.parse(stdout) as { ok: boolean; problems: { code: string }[] };
  expect(ok).toBe(problems.length === 0);
  return { code, codes: [...new Set(problems.map((problem) => problem.code))] };
}

async function checkpointLine(): Promise<string> {
  const { stdout } = await api.gpd.cli(['doctor', '--json']);
  const { checks } = JSON.parse(stdout) as { checks: { id: string; status: string }[] };
  return checks.find(({ id }) => id === 'log.entries')?.status ?? 'none';
}

/** The newest proof, which a checkpoint over the whole log has to cover. */
const sign = (seq: number) => api.get(`/v1/consent/proofs/${seq}`);

const NEWEST = `kid = '${KID}' AND size = (SELECT max(size) FROM checkpoints WHERE kid = '${KID}')`;

it('a newest checkpoint that is damaged stops the signing, until it is back', async () => {
  const { seq: first } = await api.write('grant', { principalId: 'anna' });
  expect((await sign(first)).status).toBe(200);
  const [newest] = await sql(`SELECT note FROM checkpoints WHERE ${NEWEST}`);
  await sql(`UPDATE checkpoints SET note = '' WHERE ${NEWEST}`);
  const { seq } = await api.write('grant', { principalId: 'bert' });
  for (const reply of [await api.get('/v1/ledger/checkpoint'), await sign(seq)])
    expectError(reply, 'unavailable');
  expect((await verify()).codes).toEqual(['checkpoint-not-extended']);
  expect(await checkpointLine()).toBe('fail');
  await sql(`UPDATE checkpoints SET note = '${String(newest?.['note'])}' WHERE ${NEWEST}`);
  expect((await api.get('/v1/ledger/checkpoint')).status).toBe(200);
});

it('checkpoints that are gone from the database are missing, until the last line of checkpoints.log is a row again', async () => {
  await sql(`DELETE FROM checkpoints WHERE kid = '${KID}'`);
  expect((await verify()).codes).toEqual(['checkpoint-missing']);
  expect(await checkpointLine()).toBe('fail');
  expect((await api.get('/v1/ledger/checkpoint')).status).toBe(200);
  expect((await verify()).codes).toEqual([]);
  expect(await checkpointLine()).toBe('pass');
});

it('a newest checkpoint whose size was changed stops the signing', async () => {
  const grow = (by: number) => sql(`UPDATE checkpoints SET size = size + ${by} WHERE ${NEWEST}`);
  await grow(1000);
  const { seq } = await api.write('grant', { principalId: 'carl' });
  expectError(await sign(seq), 'unavailable');
  await grow(-1000);
  expect((await api.get('/v1/ledger/checkpoint')).status).toBe(200);
});

it('a changed opening ends nothing: the entries of later pages are compared too, and the checkpoints agree', async () => {
  const people = Array.from({ length: 1000 }, (_, i) => `person-${i}`);
  for (const chunk of chunksOf(people, 50))
    await Promise.all(chunk.map((principalId) => api.write('grant', { principalId })));
  const { seq } = await api.write('grant', { principalId: 'last' });
  expect((await sign(seq)).status).toBe(200);
  const move = (ms: number) => sql(`UPDATE consent_openings SET at = at + ${ms} WHERE seq IN (10, ${seq})`);
  await move(-5000);
  const { stdout } = await api.gpd.cli(['consent', 'verify', KID, '--json']);
  const checked = JSON.parse(stdout) as { size: number; problems: { code: string; seq: number }[] };
  expect(checked.size).toBe(seq + 1);
  expect(checked.problems.map((one) => `${one.code} ${one.seq}`)).toEqual([
    'opening-changed 10',
    'state-changed 10',
    `opening-changed ${seq}`,
    `state-changed ${seq}`,
  ]);
  await move(5000);
  expect(await verify()).toEqual({ code: 0, codes: [] });
});

it('a log agrees with checkpoints that were kept elsewhere, until its last entry is taken: it is not signed then, and checks go on', async () => {
  await api.write('grant', { principalId: 'anna' });
  const { seq } = await api.write('withdraw', { principalId: 'anna' });
  expect((await sign(seq)).status).toBe(200);
  const checkpoint = (await api.get('/v1/ledger/checkpoint')).text;
  expect(readCheckpoint(checkpoint).size).toBe(seq + 1);
  expect(await verify()).toEqual({ code: 0, codes: [] });
  expect(await checkpointLine()).toBe('pass');
  const file = join(api.gpd.dataDir, '..', 'kept.txt');
  writeFileSync(file, `${checkpoint}${checkpoint}`);
  expect(await verify('--against', file)).toEqual({ code: 0, codes: [] });
  writeFileSync(file, readFileSync(join(api.gpd.dataDir, 'checkpoints.log')));
  expect(await verify('--against', file)).toEqual({ code: 0, codes: [] });
  writeFileSync(file, 'no note');
  const { code, stderr } = await api.gpd.cli(['consent', 'verify', KID, '--against', file]);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: `gpd: ${file} has no checkpoint that this log signed\n`,
  });

  const { seq: last } = await api.write('withdraw', { principalId: 'bert' });
  expect((await sign(last)).status).toBe(200);
  writeFileSync(file, (await api.get('/v1/ledger/checkpoint')).text);
  const rows = await sql(
    `SELECT hash FROM ledger_entries WHERE kid = '${KID}' AND seq < ${last} ORDER BY seq`,
  );
  const leaves = rows.map(({ hash }) => Buffer.from(String(hash), 'hex'));
  const { frontier } = appendLeaves(EMPTY_FRONTIER, leaves);
  await sql(
    `DELETE FROM ledger_entries WHERE kid = '${KID}' AND seq = ${last}`,
    `DELETE FROM consent_openings WHERE kid = '${KID}' AND seq = ${last}`,
    `UPDATE ledger_heads SET size = ${last}, frontier = '${encodeFrontier(frontier)}', head_hash = '${leaves.at(-1)?.toString('hex')}'
      WHERE kid = '${KID}'`,
    `DELETE FROM checkpoints WHERE kid = '${KID}'`,
  );
  expectError(await api.get('/v1/ledger/checkpoint'), 'unavailable');
  expect((await verify()).codes).toContain('checkpoint-not-extended');
  expect((await verify('--against', file)).codes).toContain('checkpoint-not-extended');
  expect(await checkpointLine()).toBe('fail');
  expect(await api.check('anna')).toMatchObject({ allowed: false, reason: 'withdrawn' });
});
