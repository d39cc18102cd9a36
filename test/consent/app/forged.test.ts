import { expect, it } from 'vitest';
import { execute } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { started } from '../../support/started.ts';
import { PURPOSE, startApi } from './support/api.ts';

/** Finding 4: by SQL alone a withdrawal became a permission, with the withdrawal's own entry as its proof. */

const api = started(() => startApi({ purposes: [{ id: 'ads' }] }));

/** In one transaction: a server that reads between the last two statements would not look again. */
const setGpc = (policy: string) =>
  execute(
    api.gpd.dataDir,
    'BEGIN IMMEDIATE',
    `UPDATE purposes SET gpc = '${policy}' WHERE id = 'ads'`,
    'UPDATE revisions SET revision = revision + 1',
    'UPDATE tenants SET revision = (SELECT max(revision) FROM revisions)',
    'COMMIT',
  );

it('a withdrawn row that says granted is 503 on check, batch and state, told and failed by doctor', async () => {
  await api.write('grant', { principalId: 'anna' });
  const { seq } = await api.write('withdraw', { principalId: 'anna' });
  expect(await api.check('anna')).toMatchObject({ reason: 'withdrawn' });
  const assignments = `choice = 'granted', expires_at = ${Date.now() + 1e9}`;
  await execute(api.gpd.dataDir, `UPDATE consent_state SET ${assignments} WHERE seq = ${seq}`);
  const one = { principalId: 'anna', purpose: PURPOSE };
  expectError(await api.post('/v1/consent/can-process', one), 'unavailable');
  const checks = [{ id: 'a', ...one }];
  expectError(await api.post('/v1/consent/can-process/batch', { checks }), 'unavailable');
  expectError(await api.post('/v1/consent/state', { principalId: 'anna' }), 'unavailable');
  expect(await api.check('bea')).toMatchObject({ reason: 'never-asked' });
  expect(api.gpd.logs()).toMatch(/"event":"consent-state-invalid","tenant":"acme"/);
  const doctor = await api.gpd.cli(['doctor', '--json']);
  const { checks: lines } = JSON.parse(doctor.stdout) as { checks: { id: string; status: string }[] };
  expect(lines.find(({ id }) => id === 'consent.state')).toMatchObject({ status: 'fail' });
  // The person’s next word counts, and mends the row.
  await api.write('withdraw', { principalId: 'anna' });
  expect(await api.check('anna')).toMatchObject({ allowed: false, reason: 'withdrawn' });
});

it('a purpose whose policy was changed by hand denies, and still takes a withdrawal', async () => {
  await api.write('grant', { principalId: 'carl', purposes: ['ads'], gpc: true });
  await setGpc('ignore');
  const check = () => api.post('/v1/consent/can-process', { principalId: 'carl', purpose: 'ads' });
  await expect.poll(async () => (await check()).status, { interval: 50, timeout: 20_000 }).toBe(503);
  const body = { principalId: 'carl', purposes: ['ads'] };
  expectError(await api.post('/v1/consent/grant', body), 'unavailable');
  expect((await api.post('/v1/consent/withdraw', body)).status).toBe(201);
  await setGpc('opt-out');
  await expect.poll(async () => (await check()).status, { interval: 50, timeout: 20_000 }).toBe(200);
});

it('an opening whose entry does not commit to it is 503 wherever it would be shown or signed, and told', async () => {
  await api.write('grant', { principalId: 'dora' });
  const { seq } = await api.write('deny', { principalId: 'dora' });
  const shown = () => [
    api.get(`/v1/consent/receipts/${seq}`),
    api.post('/v1/consent/receipts', { principalId: 'dora' }),
    api.post('/v1/consent/history', { principalId: 'dora' }),
  ];
  const statuses = async () => (await Promise.all(shown())).map(({ status }) => status);
  expect(await statuses()).toEqual([200, 200, 200]);
  const forge = (assignment: string) =>
    execute(api.gpd.dataDir, `UPDATE consent_openings SET ${assignment} WHERE seq = ${seq}`);
  for (const [forged, genuine] of [
    ["choice = 'granted'", "choice = 'denied'"],
    [
      'detail = replace(detail, \'"gpc":false\', \'"gpc":true\')',
      'detail = replace(detail, \'"gpc":true\', \'"gpc":false\')',
    ],
    ['at = at - 5000', 'at = at + 5000'],
  ] as const) {
    await forge(forged);
    expect(await statuses(), forged).toEqual([503, 503, 503]);
    await forge(genuine);
    expect(await statuses(), forged).toEqual([200, 200, 200]);
  }
  const entry = `UPDATE ledger_entries SET entry = replace(entry, 'consent.%s"', 'consent.%s"') WHERE seq = ${seq}`;
  const rewrite = (before: string, after: string) =>
    execute(api.gpd.dataDir, entry.replace('%s', before).replace('%s', after));
  await forge("choice = 'granted'");
  await rewrite('denied', 'granted');
  expect(await statuses()).toEqual([503, 503, 503]);
  await forge("choice = 'denied'");
  await rewrite('granted', 'denied');
  expect(await statuses()).toEqual([200, 200, 200]);
});
