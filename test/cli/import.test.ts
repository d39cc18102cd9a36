import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { createOwn, type Own } from './support/own.ts';

/** Imports choices of another system (contract-2 section 19). */

const PURPOSE = 'device-identification';

function fileOf(text: string | Buffer): string {
  const file = join(tempDir('import'), 'records');
  writeFileSync(file, text);
  return file;
}

const importText = (mine: Own, text: string, ...flags: string[]) =>
  mine.json(`consent import ${KID} ${fileOf(text)}`, ...flags);

const check = async (mine: Own, who: string): Promise<unknown> =>
  (await mine.json(`consent check ${KID} ${who} ${PURPOSE}`))['reason'];

const CSV = `\u{feff}principalId,purpose,action,recordedAt,evidence
"anna, of the shop",${PURPOSE},grant,2024-05-01T10:00:00+02:00,"form 12, ""page"" 3"
ben,${PURPOSE},grant,2024-04-01,
ben,${PURPOSE},withdraw,2024-05-01,
cleo,${PURPOSE},deny,,
`;

describe.concurrent('gpd consent import', () => {
  it('records each row with its own date and evidence, once; a dry run nothing', async () => {
    const mine = await createOwn();
    const before = await mine.dump();
    const report = { kid: KID, recorded: 4, outdated: 0, erased: 0 };
    expect(await importText(mine, CSV, '--dry-run')).toEqual({ ...report, dryRun: true });
    expect(await mine.dump()).toEqual(before);
    expect(await importText(mine, CSV)).toEqual({ ...report, dryRun: false });
    const { events } = await mine.json<{ events: object[] }>(`consent history ${KID} 'anna, of the shop'`);
    expect(events).toMatchObject([
      {
        type: 'consent.granted',
        source: 'import',
        recordedAt: '2024-05-01T08:00:00.000Z',
        evidence: 'form 12, "page" 3',
        // The grant expires by its recorded date, not by that of the import.
        expiresAt: '2024-10-28T08:00:00.000Z',
      },
    ]);
    expect([await check(mine, 'ben'), await check(mine, 'cleo')]).toEqual(['withdrawn', 'denied']);
    const after = await mine.dump();
    expect(await importText(mine, CSV)).toMatchObject({ recorded: 0, outdated: 4 });
    expect(await importText(mine, CSV, '--dry-run')).toMatchObject({ recorded: 0, outdated: 4 });
    expect(await mine.dump()).toEqual(after);
    expect(await mine.json(`consent verify ${KID}`)).toMatchObject({ ok: true });
  });

  it('an old grant replaces neither a newer choice nor an erasure', async () => {
    const mine = await createOwn();
    const row = (who: string) =>
      JSON.stringify({ principalId: who, purpose: PURPOSE, action: 'grant', recordedAt: '2024-05-01' });
    await mine.json(`consent withdraw ${KID} dora ${PURPOSE}`);
    await mine.json(`consent grant ${KID} emil ${PURPOSE}`);
    await mine.json(`erase --tenant ${KID} --principal emil --yes`);
    const text = [row('dora'), row('emil'), row('finn')].join('\n');
    const expected = { recorded: 1, outdated: 1, erased: 1 };
    expect(await importText(mine, text, '--dry-run')).toMatchObject(expected);
    expect(await importText(mine, text)).toMatchObject(expected);
    expect([await check(mine, 'dora'), await check(mine, 'emil')]).toEqual(['withdrawn', 'erased']);
  });

  it('an old grant makes no new row of one that somebody wrote without the key', async () => {
    const mine = await createOwn();
    await mine.json(`consent withdraw ${KID} hugo ${PURPOSE}`);
    const text = `principalId,purpose,action,recordedAt\nhugo,${PURPOSE},grant,2024-05-01\n`;
    const attacks = [
      "UPDATE consent_state SET seq = (SELECT MIN(seq) FROM consent_openings), choice = 'granted'",
      "UPDATE consent_principals SET account = 'nobody'",
    ];
    await mine.json(`consent grant ${KID} ida ${PURPOSE}`);
    for (const sql of ['UPDATE consent_openings SET at = 1', ...attacks]) await mine.query(sql);
    const expected = { recorded: 0, outdated: 1 };
    expect(await importText(mine, text, '--dry-run')).toMatchObject(expected);
    expect(await importText(mine, text)).toMatchObject(expected);
  });

  it('a refusal without a date counts after a grant without one, and a grant after it does not', async () => {
    const mine = await createOwn();
    const rows = ['grant', 'withdraw', 'grant'].map((action) => `gina,${PURPOSE},${action}`);
    const report = await importText(mine, ['principalId,purpose,action', ...rows].join('\n'));
    expect(report).toMatchObject({ recorded: 2, outdated: 1 });
    expect(await check(mine, 'gina')).toBe('withdrawn');
  });

  it.each([
    ['principalId,purpose,action\nh,ads,grant\n', 'line 2, field purpose: '],
    [`principalId,purpose,action\n\nh,${PURPOSE},yes\n`, 'line 3, field action: '],
    [`principalId,purpose,action,recordedat\nh,${PURPOSE},grant,2024\n`, 'line 2, field recordedat: '],
    [`principalId,purpose,action,recordedAt\nh,${PURPOSE},grant,2024-05-01 10:00\n`, 'field recordedAt: '],
    [`principalId,purpose,action,recordedAt\nh,${PURPOSE},grant,2996-11-01\n`, 'field recordedAt: it is in'],
    [`principalId,purpose,action,policyVersion\nh,${PURPOSE},grant,7\n`, 'field policyVersion: '],
    [`principalId,purpose,action\nh,${PURPOSE}\n`, 'line 2: not valid CSV'],
    [`{"principalId":"h","purpose":"${PURPOSE}","action":"grant"}\n{"principalId":`, 'line 2: '],
    [`{"principalId":"h","purpose":"${PURPOSE}","action":"withdraw","action":"grant"}`, 'line 1: '],
    [`principalId,purpose,action,action\nh,${PURPOSE},withdraw,grant\n`, 'the column action comes twice'],
    [Buffer.from(`principalId,purpose,action\nmüller,${PURPOSE},grant\n`, 'latin1'), 'line 2: not UTF-8'],
  ])('%j: names line and field, and records nothing', async (text, message) => {
    const mine = await createOwn();
    const good = `principalId,purpose,action\ngood,${PURPOSE},grant\n`;
    expect(await importText(mine, good)).toMatchObject({ recorded: 1 });
    const before = await mine.dump();
    const ran = await mine.gpd(`consent import ${KID} ${fileOf(text)}`);
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain(message);
    expect(await mine.dump()).toEqual(before);
  });

  it.each([
    [
      'a quote that is never closed',
      `principalId,purpose,action\nh,${PURPOSE},grant\ni,"${'x\n'.repeat(40_000)}`,
      'column purpose: longer than 65536 characters; look for a missing closing quote',
    ],
    [
      'a line that never ends',
      `{"principalId":"h","purpose":"${PURPOSE}","action":"grant"}\n{"principalId":"${'x'.repeat(70_000)}`,
      'line 2: longer than 65536 bytes',
    ],
  ])('%s: names the place without reading on, and records nothing', async (_name, text, message) => {
    const mine = await createOwn();
    const before = await mine.dump();
    const ran = await mine.gpd(`consent import ${KID} ${fileOf(text)}`);
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain(message);
    expect(await mine.dump()).toEqual(before);
  });

  it('more rows than one batch takes, in the order of the file', async () => {
    const mine = await createOwn();
    const pair = (i: number) => [`p${i},${PURPOSE},grant,2024-04-01`, `p${i},${PURPOSE},deny,2024-04-02`];
    const lines = Array.from({ length: 1250 }, (_, i) => pair(i)).flat();
    const text = ['principalId,purpose,action,recordedAt', ...lines].join('\n');
    expect(await importText(mine, text)).toMatchObject({ recorded: 2500, outdated: 0 });
    expect([await check(mine, 'p0'), await check(mine, 'p1249')]).toEqual(['denied', 'denied']);
  });

  it('what an erasure took does not come back, even if the person has agreed to something else since', async () => {
    const mine = await createOwn();
    await mine.json('consent', 'purposes', 'set', KID, 'ads', '--title', 'Ads');
    const row = (recordedAt: string) =>
      JSON.stringify({ principalId: 'hugo', purpose: 'ads', action: 'grant', recordedAt });
    const old = row('2026-01-05');
    expect(await importText(mine, old)).toMatchObject({ recorded: 1 });
    await mine.json('erase', '--tenant', KID, '--principal', 'hugo', '--yes');
    await mine.json('consent', 'grant', KID, 'hugo', PURPOSE);
    expect(await importText(mine, old, '--dry-run')).toMatchObject({ recorded: 0, erased: 1 });
    expect(await importText(mine, old)).toMatchObject({ recorded: 0, erased: 1 });
    const { reason } = await mine.json('consent', 'check', KID, 'hugo', 'ads');
    expect(reason).toBe('never-asked');
    // One that the other system recorded after the erasure is a new choice.
    expect(await importText(mine, row(new Date().toISOString()))).toMatchObject({ recorded: 1 });
  });
});
