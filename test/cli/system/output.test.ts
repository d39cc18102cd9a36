import { beforeAll, describe, expect, it } from 'vitest';
import { gpdJson, PROGRAM, type Ran, runGpd, spawnTool } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { createOwn, type Own } from '../support/own.ts';

let mine: Own;
beforeAll(async () => {
  mine = await createOwn();
});

/** Runs a shell script, in which GPD is the built program. */
async function shell(script: string, settings: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const text = script.replaceAll('GPD ', `"${process.execPath}" "${PROGRAM}" `);
  const { output, exited } = spawnTool('bash', ['-c', text], { env: { ...mine.env, ...settings } });
  return { ...(await exited), ...output };
}

describe.concurrent('stdout is data, stderr is messages', () => {
  it.each([
    'tenants list',
    `tenants set ${KID} retention.days=60`,
    `keys rotate ${KID} --dry-run`,
    'migrate',
    'replay -',
  ])('%s --json prints one JSON value and nothing else', async (line) => {
    const ran = await runGpd([...line.split(' '), '--json'], { env: mine.env });
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout.endsWith('\n')).toBe(true);
    expect(ran.stdout.trimEnd()).not.toContain('\n');
    expect(() => JSON.parse(ran.stdout) as unknown).not.toThrow();
  });

  it('--json may stand before the command', async () => {
    const [before, after] = [await mine.gpd('--json keys list'), await mine.gpd('keys list --json')];
    expect(before.stdout).toBe(after.stdout);
  });

  it('a refusal with --json is a message on stderr alone', async () => {
    const ran = await mine.gpd(`tenants add ${KID} --json`);
    expect(ran).toMatchObject({
      code: 7,
      stdout: '',
      stderr: expect.stringMatching(/^gpd: .*\n$/) as string,
    });
  });

  it.each([
    ['', 2],
    ['--help', 0],
    ['keys rotate --help', 0],
    ['--version', 0],
  ])('gpd %s exits %i', async (line, code) => expect((await mine.gpd(line)).code).toBe(code));

  it('prints no colours into a pipe', async () => {
    for (const line of ['tenants list', 'nonsense']) {
      const ran = await mine.gpd(line);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
      expect(ran.stdout + ran.stderr).not.toMatch(/\u001b/);
    }
  });

  it('a stdout that takes nothing is 1 and a sentence, and no stack', async () => {
    const ran = await shell('GPD tenants list > /dev/full');
    expect(ran.code).toBe(1);
    expect(ran.stderr.trim()).toMatch(/^gpd: stdout cannot be written \(ENOSPC\)[^\n]*$/);
  });

  it('a PostgreSQL that refuses is named with its cause, in one line without the password or a warning', async () => {
    const url = 'postgres://gpd:s3cret@127.0.0.1:1/gpd?sslmode=require';
    const settings = { GPD_DATABASE_URL: url };
    const env = { ...mine.env, ...settings };
    for (const ran of [
      await shell('GPD serve --port 0', settings),
      await runGpd(['status'], { env }),
      await mine.gpd(`move --to '${url}'`),
    ]) {
      expect(ran.code).toBe(75);
      expect(ran.stderr).toMatch(
        /^gpd: the database postgres:\/\/127\.0\.0\.1:1\/gpd cannot be used now: it refuses the connection \(ECONNREFUSED\)[^\n]*\n$/,
      );
    }
  });
});

describe.concurrent('in a pipe', () => {
  it('a reader that goes away is no failure, and head gets its line', async () => {
    const unread = await shell('GPD tenants list --json | true; echo "$PIPESTATUS"');
    expect(unread).toMatchObject({ code: 0, stdout: '0\n', stderr: '' });
    const head = await shell('GPD keys list | head -1; echo "$PIPESTATUS"');
    expect(head.stdout).toMatch(/^KID .*\n0\n$/);
    expect(head.stderr).toBe('');
  });

  it('nothing prompts without a terminal, even when input stays open', async () => {
    const { env } = await createOwn();
    await gpdJson(['keys', 'rotate', KID], { env });
    const ran = await runGpd(['keys', 'destroy', KID, '1'], { env, input: null });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(/--yes/);
  });
});
