import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ran, runGpd, tempDir } from '../support/command.ts';
import { dumpDatabase } from '../support/database.ts';
import { browserHeaders, desktopChrome, headlessChrome } from '../support/samples.ts';
import { createBundle, flipByte } from '../support/seal.ts';
import { type Gpd, initGpd, type SealTarget, startGpd } from '../support/server.ts';

interface Report {
  readonly total: number;
  readonly byReason: Record<string, number>;
  readonly byClass: Record<string, number>;
  readonly mismatches: number;
}

let gpd: Gpd;
let acme: SealTarget;
beforeAll(async () => {
  gpd = await startGpd();
  acme = gpd.targets[0]!;
});
afterAll(() => gpd.stop());

const headers = browserHeaders();
const human = (): unknown => ({ bundle: createBundle(acme), headers });

function fileOf(lines: readonly unknown[]): string {
  const file = join(tempDir('replay'), 'bundles.ndjson');
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  writeFileSync(file, texts.join('\n'));
  return file;
}

async function replay(lines: readonly unknown[], ...flags: string[]): Promise<Ran & { report: Report }> {
  return reportOf(await gpd.cli(['replay', fileOf(lines), '--json', ...flags]));
}

function reportOf(ran: Ran): Ran & { report: Report } {
  return { ...ran, report: JSON.parse(ran.stdout) as Report };
}

describe.concurrent('gpd replay, offline', () => {
  it('opens and classifies bundles, plain or with their headers, and writes nothing', async () => {
    // A copy with the same keys, whose server gets no bundles of other tests.
    const { dataDir } = await initGpd();
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
    ];
    const env = { GPD_DATA_DIR: dataDir };
    const { code, report } = reportOf(await runGpd(['replay', fileOf(lines), '--json'], { env }));
    expect(code).toBe(0);
    expect(report).toEqual({
      total: 10,
      byReason: {
        ok: 2,
        replay: 1,
        'consent-missing': 2,
        'decrypt-failed': 2,
        'malformed-sealed-bundle': 3,
      },
      byClass: { human: 1, undeclared_automation: 1 },
      mismatches: 0,
    });
    expect(await dumpDatabase(dataDir)).toEqual(before);
  });

  it('judges each bundle at its own time', async () => {
    const old = { bundle: createBundle(acme, { clientTs: 1_600_000_000_000 }), headers };
    const future = { bundle: createBundle(acme, { clientTs: Date.now() + 1e9 }), headers };
    const { report } = await replay([old, future]);
    expect(report.byReason).toEqual({ ok: 2 });
  });

  // Guards against: expectations of a file steered the terminal.
  it('shows what a file expects as text', async () => {
    const reason = '\u001b]0;x\u0007\u001b[2K';
    const { stderr } = await gpd.cli([
      'replay',
      fileOf([{ bundle: createBundle(acme), headers, expect: { reason } }]),
    ]);
    expect(stderr).toContain('line 1: expected \u{fffd}]0;x\u{fffd}\u{fffd}[2K');
  });

  it('counts what was expected otherwise, names the lines on stderr and exits 1', async () => {
    const lines = [
      { ...(human() as object), expect: { reason: 'ok', class: 'human' } },
      { ...(human() as object), expect: { reason: 'replay' } },
      { ...(human() as object), expect: { class: 'undeclared_automation' } },
      { ...(human() as object), expect: {} },
      { bundle: {}, expect: { reason: 'malformed-sealed-bundle' } },
    ];
    const { code, report, stderr } = await replay(lines);
    expect(code).toBe(1);
    expect(report).toMatchObject({ total: 5, mismatches: 2 });
    expect(stderr).toMatch(/line 2: expected replay/);
    expect(stderr).toMatch(/line 3: expected undeclared_automation/);
    expect(stderr).not.toMatch(/line [145]:/);
  });

  it('reads standard input for -', async () => {
    const input = [human(), human()].map((line) => `${JSON.stringify(line)}\r\n`).join('');
    const ran = await gpd.cli(['replay', '-', '--json'], { input });
    expect(JSON.parse(ran.stdout)).toMatchObject({ total: 2, byReason: { ok: 2 } });
  });

  it('an empty input is no failure', async () => {
    const { code, report } = await replay([]);
    expect(code).toBe(0);
    expect(report).toEqual({ total: 0, byReason: {}, byClass: {}, mismatches: 0 });
  });

  it('shows a person a table of reasons and classes', async () => {
    const ran = await gpd.cli(['replay', fileOf([human(), human()])]);
    expect(ran.stdout).toMatch(/^REASON\s+BUNDLES\nok\s+2\n/);
    expect(ran.stdout).toMatch(/\nCLASS\s+BUNDLES\nhuman\s+2\n/);
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

  it.each([
    [3, ['none.ndjson']],
    [2, []],
    [2, ['-', '--concurrency', '0', '--url', 'http://127.0.0.1:1']],
    [2, ['-', '--url', 'nowhere']],
  ])('%i for replay %j', async (code, args) => {
    expect(await gpd.cli(['replay', ...args])).toMatchObject({ code, stdout: '' });
  });
});

describe.concurrent('gpd replay --url', () => {
  it('sends the bundles with their headers, and the server remembers them', async () => {
    const signals = desktopChrome();
    const lines = [
      { bundle: createBundle(acme, { signals }), headers, expect: { reason: 'ok', class: 'human' } },
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
    const lines = Array.from({ length: 100 }, human);
    const { report } = await replay(lines, '--url', gpd.url, '--concurrency', '16');
    expect(report).toEqual({ total: 100, byReason: { ok: 100 }, byClass: { human: 100 }, mismatches: 0 });
  });

  it('needs no database here', async () => {
    const ran = await runGpd(['replay', '-', '--url', gpd.url, '--json'], { input: JSON.stringify(human()) });
    expect(JSON.parse(ran.stdout)).toMatchObject({ total: 1, byReason: { ok: 1 } });
  });

  it('says so when nobody answers', async () => {
    const ran = await runGpd(['replay', '-', '--url', 'http://127.0.0.1:1'], {
      input: JSON.stringify(human()),
    });
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toMatch(/does not answer/);
  });
});
