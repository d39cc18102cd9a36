import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import {
  ALICE,
  day,
  ERASED,
  linesOf,
  OTHERS,
  PERIOD,
  type People,
  startWithPeople,
  unpackParts,
} from './support.ts';

/** `gpd evidence` (contract-2 section 23), on the command line. */

let people: People;
beforeAll(async () => {
  people = await startWithPeople();
});
afterAll(() => people.api.stop());

async function make(name: string, ...flags: readonly string[]) {
  const file = join(tempDir('out'), name);
  const ran = await people.cli('evidence', KID, ...PERIOD, '--out', file, '--json', ...flags);
  expect(ran).toMatchObject({ code: 0 });
  return { file, ran, ...unpackParts(file) };
}

const ALONE = [
  'README.html',
  'SHA256SUMS',
  'SHA256SUMS.jws',
  'entries.ndjson',
  'gpc.json',
  'made-at.txt',
  'openings.ndjson',
  'tombstones.ndjson',
  'verify.py',
];

describe('gpd evidence', () => {
  it('has every part, for its owner only, and the hash that it prints', async () => {
    const { file, ran, parts } = await make('all.zip');
    const names = [...parts.keys()].sort();
    expect(names.filter((name) => !name.includes('/'))).toEqual(ALONE);
    for (const folder of ['checkpoints', 'proofs', 'definitions', 'banner', 'receipts'])
      expect(names.some((name) => name.startsWith(`${folder}/`))).toBe(true);
    const bytes = readFileSync(file);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    expect(JSON.parse(ran.stdout)).toMatchObject({ sha256, size: bytes.length });
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    const audit = await people.cli('audit', KID, '--action', 'evidence.made', '--json');
    const [row] = JSON.parse(audit.stdout) as readonly { object: string; detail: object }[];
    const detail = { sha256, from: `${day(-1)}T00:00:00.000Z`, to: `${day(2)}T00:00:00.000Z` };
    expect(row).toMatchObject({ object: KID, detail });
  });

  it('gives the same bytes for the same request, but for made-at.txt', async () => {
    const [a, b] = [await make('a.zip', '--principal', ALICE), await make('b.zip', '--principal', ALICE)];
    expect([...a.parts.keys()]).toEqual([...b.parts.keys()]);
    for (const [name, bytes] of a.parts)
      if (name !== 'made-at.txt') expect(b.parts.get(name)?.equals(bytes), name).toBe(true);
    // Outside made-at.txt, which is stored, and its checksum, the archives are equal too.
    const [first, second] = [readFileSync(a.file), readFileSync(b.file)];
    expect(first.length).toBe(second.length);
    const differing = first.filter((byte, i) => byte !== second[i]).length;
    expect(differing).toBeLessThan(30);
  });

  it('a person’s file has their openings and nothing of another', async () => {
    const { parts } = await make('alice.zip', '--principal', ALICE);
    const openings = linesOf(parts.get('openings.ndjson'));
    // Two grants, a withdrawal, and a denial or an opt-out.
    expect(openings.length).toBeGreaterThanOrEqual(4);
    expect(new Set(openings.map((one) => one['principalId']))).toEqual(new Set([ALICE]));
    const all = linesOf((await make('whole.zip')).parts.get('openings.ndjson'));
    const strangers = all.filter((one) => one['subject'] !== openings[0]?.['subject']);
    expect(strangers.length).toBeGreaterThan(5);
    const ids = [...OTHERS, ERASED, ...strangers.flatMap((one) => [one['subject'], one['key'], one['salt']])];
    for (const [name, bytes] of parts)
      for (const id of ids) expect(bytes.includes(String(id)), `${String(id)} in ${name}`).toBe(false);
    const entries = linesOf(parts.get('entries.ndjson'));
    const personal = entries.filter((one) => String(one['entry']).includes('"subject":'));
    expect(personal.map((one) => one['seq'])).toEqual(openings.map((one) => one['seq']));
  });

  it('an erased person is a tombstone and never an opening', async () => {
    const { parts } = await make('erased.zip', '--principal', ERASED);
    expect(parts.get('openings.ndjson')?.length).toBe(0);
    expect(linesOf(parts.get('tombstones.ndjson'))).toHaveLength(1);
    const whole = (await make('whole.zip')).parts;
    const [tombstone] = linesOf(whole.get('tombstones.ndjson'));
    const erasure = linesOf(whole.get('entries.ndjson')).find((one) => one['seq'] === tombstone?.['seq']);
    expect(String(erasure?.['entry'])).toContain('"type":"subject.erased"');
    expect(whole.get('openings.ndjson')?.includes(ERASED)).toBe(false);
  });

  it('says what the person was shown, under which words, and what became of GPC', async () => {
    const { parts } = await make('alice.zip', '--principal', ALICE);
    const texts = (name: string): string => parts.get(name)?.toString() ?? '';
    const banner =
      [...parts.keys()].find((name) => name.startsWith('banner/') && name.endsWith('.json')) ?? '';
    expect(texts(banner)).toContain('Newsletter');
    for (const end of ['html', 'svg']) expect(texts(banner.replace(/json$/, end))).toContain('Newsletter');
    expect(texts('definitions/policy-1.txt')).toBe('We measure visits, and nothing else.');
    expect(JSON.parse(texts('gpc.json'))).toMatchObject({
      received: expect.any(Number) as number,
      shown: { text: 'Global Privacy Control honoured' },
    });
    expect((JSON.parse(texts('gpc.json')) as { honoured: number }).honoured).toBeGreaterThan(0);
    const receipts = [...parts.keys()].filter((name) => name.startsWith('receipts/'));
    const graph = receipts.flatMap((name) => (JSON.parse(texts(name)) as { '@graph': object[] })['@graph']);
    expect(graph[0]).toMatchObject({
      '@type': 'dpv:ConsentReceipt',
      schema_version: 'ISO/IEC TS 27560:2023',
      event_state: 'dpv:ConsentGiven',
      pii_principal: { pii_principal_id: ALICE },
      pii_controllers: [{ party_name: 'Acme Ltd', party_contact: 'dpo@acme.example' }],
      proof: { hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
    });
  });

  it('README.html is whole, has no script, and names who is responsible', async () => {
    const { parts } = await make('alice.zip', '--principal', ALICE);
    const page = parts.get('README.html')?.toString() ?? '';
    expect(page).toMatch(/<html lang="en">/);
    expect(page).not.toMatch(/<script|<link|<img|src=|@import|url\((?!data:)/i);
    // On a phone a table is cards, which show the labels in place of the column heads.
    expect(page.match(/<td data-label="What it proves">/g)).toHaveLength(10);
    for (const text of [
      'Acme Ltd',
      'dpo@acme.example',
      KID,
      day(-1),
      'python3 verify.py',
      'What it does not prove',
    ])
      expect(page).toContain(text);
  });

  it.each([
    [2, 'an empty period', [KID, '--from', day(1), '--to', day(1)]],
    [2, 'a period that ends before it begins', [KID, '--from', day(1), '--to', day(0)]],
    [2, 'a day that the calendar lacks', [KID, '--from', '2026-02-30', '--to', '2026-03-02']],
    [2, 'no date', [KID, '--from', 'yesterday', '--to', day(1)]],
    [2, 'no end', [KID, '--from', day(0)]],
    [2, 'a principal and a request', [KID, ...PERIOD, '--principal', ALICE, '--request', 'req_1']],
    [3, 'an unknown tenant', ['nobody', ...PERIOD]],
    [3, 'an unknown principal', [KID, ...PERIOD, '--principal', 'mallory']],
    [3, 'another tenant’s principal', ['other', ...PERIOD, '--principal', ALICE]],
    [3, 'an unknown request', [KID, ...PERIOD, '--request', 'req_01KAG000000000000000000000']],
  ] as const)('ends with %i for %s, and writes nothing', async (code, _name, args) => {
    const file = join(tempDir('out'), 'none.zip');
    expect(await people.cli('evidence', ...args, '--out', file)).toMatchObject({ code });
    expect(() => statSync(file)).toThrow();
  });

  it('ends with 7 where the file exists, and leaves it alone', async () => {
    const file = join(tempDir('out'), 'there.zip');
    writeFileSync(file, 'mine');
    expect(await people.cli('evidence', KID, ...PERIOD, '--out', file)).toMatchObject({ code: 7 });
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });

  it.each([
    ['at = at - 5000', 'at = at + 5000'],
    ["detail = '{' || detail", 'detail = substr(detail, 2)'],
  ])(
    'ends with 75 and writes nothing where an entry does not commit to a row with %s',
    async (forged, genuine) => {
      const { dataDir } = people.api.gpd;
      const update = (assignment: string) =>
        execute(
          dataDir,
          `UPDATE consent_openings SET ${assignment} WHERE seq = (SELECT min(seq) FROM consent_openings)`,
        );
      await update(forged);
      const file = join(tempDir('out'), 'forged.zip');
      const ran = await people.cli('evidence', KID, ...PERIOD, '--out', file);
      expect(ran).toMatchObject({ code: 75 });
      expect(ran.stderr).toContain('changed a row of the consent ledger');
      expect(() => statSync(file)).toThrow();
      await update(genuine);
    },
  );

  it('ends and writes nothing where a part cannot be made', async () => {
    await execute(people.api.gpd.dataDir, "UPDATE banners SET texts = '{'");
    const file = join(tempDir('out'), 'none.zip');
    const { code } = await people.cli('evidence', KID, ...PERIOD, '--out', file);
    expect(code).not.toBe(0);
    expect(() => statSync(file)).toThrow();
  });
});
