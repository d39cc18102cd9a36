import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { PROGRAM, spawnTool, tempDir } from '../../support/command.ts';
import { createOwn } from '../support/own.ts';

/** Secrets by LoadCredential= of systemd, which only root and one process can read. */

function credentials(files: Readonly<Record<string, string>>): string {
  const directory = join(tempDir('credentials'), 'gpd.service');
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

const URL_A = 'postgres://gpd:secret-a@db.example/gpd';
const URL_B = 'postgres://gpd:secret-b@db.example/gpd';

describe('systemd credentials', () => {
  it('name the database and the console’s secret where nothing else does', () => {
    const directory = credentials({ 'database-url': `${URL_A}\n`, 'console-client-secret': 'x' });
    const config = loadConfig({ environment: { CREDENTIALS_DIRECTORY: directory } });
    expect(config.database_url).toBe(URL_A);
    expect(config.console_client_secret_file).toBe(join(directory, 'console-client-secret'));
    const withVariable = loadConfig({
      environment: { CREDENTIALS_DIRECTORY: directory, GPD_DATABASE_URL: URL_B },
    });
    expect(withVariable.database_url).toBe(URL_B);
  });

  it('are not needed', () => {
    for (const environment of [{}, { CREDENTIALS_DIRECTORY: credentials({}) }]) {
      const config = loadConfig({ environment });
      expect([config.database_url, config.console_client_secret_file]).toEqual([null, null]);
    }
  });

  it('come by descriptor too, of a file that was opened for this process', async () => {
    const { dataDir } = await createOwn();
    const key = join(tempDir('key'), 'master-key');
    renameSync(join(dataDir, 'master.key'), key);
    const run = async (script: string) => {
      const env = { GPD_DATA_DIR: dataDir, KEY: key, NODE: process.execPath, PROGRAM };
      const { output, exited } = spawnTool('sh', ['-c', script], { env });
      return { ...(await exited), ...output };
    };
    const list = '"$NODE" "$PROGRAM" tenants list --json';
    const missing = await run(list);
    expect(missing).toMatchObject({ code: 78, stdout: '' });
    expect(missing.stderr).toContain(join(dataDir, 'master.key'));
    // A database exists already, so the hint must not suggest `gpd init`.
    expect(missing.stderr).not.toContain('gpd init');
    const opened = 'exec 7< "$KEY"; export GPD_CREDENTIAL_FDS=master-key:7';
    expect(await run(`${opened}; ${list}`)).toMatchObject({ code: 0, stderr: '' });
    // This command reads the descriptor twice: it tries the key and prints it.
    expect(await run(`${opened}; "$NODE" "$PROGRAM" master-key escrow --json`)).toMatchObject({ code: 0 });
    const report = await run(`${opened}; "$NODE" "$PROGRAM" doctor --all --json`);
    expect(report.stdout).toContain(`"${key}"`);
    expect(await run(`exec 7< /dev/null; export GPD_CREDENTIAL_FDS=master-key:7; ${list}`)).toMatchObject({
      code: 78,
    });
    expect(await run(`export GPD_CREDENTIAL_FDS=master-key:9; ${list}`)).toMatchObject({ code: 78 });
    const rewrapped = await run(
      `openssl rand -base64 32 > "$KEY.new"; ${opened}; "$NODE" "$PROGRAM" keys rewrap --yes --new-key-file /dev/fd/9 9< "$KEY.new"
      exec 7< "$KEY.new"; ${list}`,
    );
    expect(rewrapped.code).toBe(0);
  });

  it('name the address of a database by descriptor or directory, and it is never told', async () => {
    const address = 'postgres://gpd:secret-a@127.0.0.1:1/gpd';
    const directory = credentials({ 'database-url': `${address}\n` });
    const env = { DIRECTORY: directory, NODE: process.execPath, PROGRAM };
    const list = '"$NODE" "$PROGRAM" tenants list';
    for (const given of [
      'exec 8< "$DIRECTORY/database-url"; export GPD_CREDENTIAL_FDS=database-url:8',
      'export CREDENTIALS_DIRECTORY="$DIRECTORY"',
    ]) {
      const { output, exited } = spawnTool('sh', ['-c', `${given}; ${list}`], { env });
      expect((await exited).code).toBe(75);
      expect(output.stdout + output.stderr).not.toContain('secret-a');
    }
  });
});
