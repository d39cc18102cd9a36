import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sealedBundleSchema } from '../../src/schema/bundle.ts';
import { type Ran, runGpd, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { dumpDatabase } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { browserHeaders, headlessChrome } from '../support/samples.ts';
import { createBundle, flipByte, makePlaintext } from '../support/seal.ts';
import { type Gpd, initGpd, type SealTarget, startGpd } from '../support/server.ts';

/** `gpd seal` makes bundles, and `gpd replay` judges them: offline, which writes nothing, or by a server. */

let gpd: Gpd;
let acme: SealTarget;
beforeAll(async () => {
  const tenants = [
    { kid: KID, origins: [ORIGIN] },
    { kid: 'other', origins: [] },
  ];
  gpd = await startGpd({ tenants });
  acme = gpd.targets[0]!;
  await gpd.json(['keys', 'symmetric', KID]);
});
afterAll(() => gpd.stop());

describe.concurrent('gpd seal', () => {
  const seal = (input: string, ...args: string[]): Promise<Ran> => gpd.cli(['seal', ...args], { input });
  /** The plaintext of contract section 2 without the fields that `gpd seal` adds. */
  const basePlaintext = (members: object = {}): string => {
    const { nonce: _nonce, clientTs: _clientTs, ...rest } = makePlaintext();
    return JSON.stringify({ ...rest, ...members });
  };

  it('seals standard input with the key of the database, nonce and clientTs filled in', async () => {
    const ran = await seal(basePlaintext(), KID);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(sealedBundleSchema.parse(JSON.parse(ran.stdout)).epk).toBeDefined();
    expect(ran.stdout.endsWith('}\n')).toBe(true);
    expectCore(await post(gpd.url, ran.stdout), 'ok');
  });

  it('keeps a nonce and a clientTs that are given', async () => {
    const input = JSON.stringify(makePlaintext());
    const [one, two] = [await seal(input, KID), await seal(input, KID)];
    expect(one.stdout).not.toBe(two.stdout);
    expectCore(await post(gpd.url, one.stdout), 'ok');
    expectCore(await post(gpd.url, two.stdout), 'replay');
    const staleBundle = await seal(JSON.stringify(makePlaintext({ clientTs: 5 })), KID);
    expectCore(await post(gpd.url, staleBundle.stdout), 'stale');
  });

  it('seals what is wrong as it is, so that a refusal can be tried out', async () => {
    const ran = await seal(basePlaintext({ surplus: 1 }), KID);
    expectCore(await post(gpd.url, ran.stdout), 'decrypt-failed');
  });

  it('--url takes the key from a server, without a database', async () => {
    const ran = await runGpd(['seal', KID, '--url', gpd.url], { input: basePlaintext(), env: {} });
    expect(ran.code).toBe(0);
    expectCore(await post(gpd.url, ran.stdout), 'ok');
  });

  it('--symmetric seals the legacy form, without an epk', async () => {
    const ran = await seal(basePlaintext(), KID, '--symmetric');
    const bundle = sealedBundleSchema.parse(JSON.parse(ran.stdout));
    expect(Object.keys(bundle).sort()).toEqual(['ct', 'iv', 'kid']);
    expectCore(await post(gpd.url, ran.stdout), 'ok');
  });

  it.each([
    [2, '[]', [KID]],
    [2, '{}', [KID, '--url', 'nowhere']],
    [3, '{}', ['nobody']],
    [3, '{}', ['other', '--symmetric']],
    [3, '{}', ['nobody', '--url', 'the server']],
    [1, '{}', [KID, '--url', 'http://127.0.0.1:1']],
  ])('%i for %j and seal %j', async (code, input, args) => {
    const words = args.map((word) => word.replace('the server', gpd.url));
    expect(await seal(input, ...words)).toMatchObject({ code, stdout: '' });
  });
});

interface Report {
  readonly total: number;
  readonly byReason: Record<string, number>;
  readonly byClass: Record<string, number>;
  readonly mismatches: number;
}

const headers = browserHeaders();
const human = (expected?: object): object => ({
  bundle: createBundle(acme),
  headers,
  ...(expected && { expect: expected }),
});

function fileOf(lines: readonly unknown[]): string {
  const file = join(tempDir('replay'), 'bundles.ndjson');
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  writeFileSync(file, texts.join('\n'));
  return file;
}

const reportOf = (ran: Ran): Ran & { report: Report } => ({
  ...ran,
  report: JSON.parse(ran.stdout) as Report,
});
const replay = async (lines: readonly unknown[], ...flags: string[]): Promise<Ran & { report: Report }> =>
  reportOf(await gpd.cli(['replay', fileOf(lines), '--json', ...flags]));

describe.concurrent('gpd replay, offline', () => {
  it('opens and classifies bundles, plain or with their headers, and writes nothing', async () => {
    // A copy with the same keys, whose server gets no bundles of other tests.
    const { dataDir } = await initGpd([
      { kid: KID, origins: [ORIGIN] },
      { kid: 'other', origins: [] },
    ]);
    const before = await dumpDatabase(dataDir);
    const twice = createBundle(acme);
    const broken = createBundle(acme);
    const lines = [
      { bundle: twice, headers },
      '',
      createBundle(acme, { signals: headlessChrome() }),
      { bundle: createBundle(acme), headers: { 'Sec-GPC': '1' } },
      { bundle: twice, headers },
      { ...broken, ct: flipByte(broken.ct, -1) },
      createBundle({ ...acme, kid: 'nobody' }),
      createBundle(acme, { consent: { purposes: [] } }),
      '{"kid":"acme"}',
      'not JSON at all',
      { bundle: null },
      // Each bundle is judged at its own time.
      { bundle: createBundle(acme, { clientTs: 1_600_000_000_000 }), headers },
      { bundle: createBundle(acme, { clientTs: Date.now() + 1e9 }), headers },
    ];
    const env = { GPD_DATA_DIR: dataDir };
    const { code, report } = reportOf(await runGpd(['replay', fileOf(lines), '--json'], { env }));
    expect(code).toBe(0);
    expect(report).toEqual({
      total: 12,
      byReason: {
        ok: 4,
        replay: 1,
        'consent-missing': 2,
        'decrypt-failed': 2,
        'malformed-sealed-bundle': 3,
      },
      byClass: { human: 3, undeclared_automation: 1 },
      mismatches: 0,
    });
    await runGpd(['seal', KID], { env, input: JSON.stringify(makePlaintext()) });
    expect(await dumpDatabase(dataDir)).toEqual(before);
  });

  it('counts what was expected otherwise, names the lines on stderr and exits 1', async () => {
    const lines = [
      human({ reason: 'ok', class: 'human' }),
      human({ reason: 'replay' }),
      human({ class: 'undeclared_automation' }),
      human({}),
      { bundle: {}, expect: { reason: 'malformed-sealed-bundle' } },
      // Guards against: expectations of a file steered the terminal.
      human({ reason: '\u001b]0;x\u0007\u001b[2K' }),
    ];
    const { code, report, stderr } = await replay(lines);
    expect(code).toBe(1);
    expect(report).toMatchObject({ total: 6, mismatches: 3 });
    expect(stderr).toMatch(/line 2: expected replay/);
    expect(stderr).toMatch(/line 3: expected undeclared_automation/);
    expect(stderr).toContain('line 6: expected \u{fffd}]0;x\u{fffd}\u{fffd}[2K');
    expect(stderr).not.toMatch(/line [145]:/);
  });

  it('reads standard input for -, shows a person a table, and an empty input is no failure', async () => {
    const input = [human(), human()].map((line) => `${JSON.stringify(line)}\r\n`).join('');
    const ran = await gpd.cli(['replay', '-'], { input });
    expect(ran.stdout).toMatch(/^REASON\s+BUNDLES\nok\s+2\n/);
    expect(ran.stdout).toMatch(/\nCLASS\s+BUNDLES\nhuman\s+2\n/);
    const { code, report } = await replay([]);
    expect(code).toBe(0);
    expect(report).toEqual({ total: 0, byReason: {}, byClass: {}, mismatches: 0 });
  });

  it.each([
    ['headers that are no texts', { bundle: {}, headers: { a: 1 } }],
    ['an unknown field beside the bundle', { bundle: {}, expected: {} }],
    ['a class that does not exist', { bundle: {}, expect: { class: 'robot' } }],
  ])('2 and the number of the line for %s', async (_name, line) => {
    const ran = await gpd.cli(['replay', fileOf([human(), line]), '--json']);
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(/line 2\b/);
  });
});

describe.concurrent('gpd replay --url', () => {
  it('sends the bundles with their headers, and the server remembers them', async () => {
    const lines = [
      human({ reason: 'ok', class: 'human' }),
      { bundle: createBundle(acme), headers: { 'sec-gpc': '1' }, expect: { reason: 'consent-missing' } },
      { bundle: createBundle(acme, { clientTs: 5 }), expect: { reason: 'stale' } },
      { bundle: {}, expect: { reason: 'malformed-sealed-bundle' } },
    ];
    const first = await replay(lines, '--url', gpd.url);
    expect(first).toMatchObject({ code: 0, report: { total: 4, mismatches: 0, byClass: { human: 1 } } });
    const second = await replay(lines.slice(0, 1), '--url', gpd.url);
    expect(second).toMatchObject({ code: 1, report: { byReason: { replay: 1 }, mismatches: 1 } });
  });

  it('sends many at once when asked to', async () => {
    const lines = Array.from({ length: 100 }, () => human());
    const { report } = await replay(lines, '--url', gpd.url, '--concurrency', '16');
    expect(report).toEqual({ total: 100, byReason: { ok: 100 }, byClass: { human: 100 }, mismatches: 0 });
  });

  it('needs no database here, and says so when nobody answers', async () => {
    const input = JSON.stringify(human());
    const ran = await runGpd(['replay', '-', '--url', gpd.url, '--json'], { input });
    expect(JSON.parse(ran.stdout)).toMatchObject({ total: 1, byReason: { ok: 1 } });
    const unanswered = await runGpd(['replay', '-', '--url', 'http://127.0.0.1:1'], { input });
    expect(unanswered).toMatchObject({ code: 1, stdout: '' });
    expect(unanswered.stderr).toMatch(/does not answer/);
  });
});
