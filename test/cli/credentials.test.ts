import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { runGpd, tempDir } from '../support/command.ts';
import { own } from './support/own.ts';

/** LoadCredential=: secrets that only root's files and one process hold. */

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
    const given = loadConfig({
      environment: { CREDENTIALS_DIRECTORY: directory, GPD_DATABASE_URL: URL_B },
    });
    expect(given.database_url).toBe(URL_B);
  });

  it('are not needed', () => {
    for (const environment of [{}, { CREDENTIALS_DIRECTORY: credentials({}) }]) {
      const config = loadConfig({ environment });
      expect([config.database_url, config.console_client_secret_file]).toEqual([null, null]);
    }
  });

  it('open a master key that lies nowhere else, and the address of a database is never told', async () => {
    const { dataDir } = await own();
    const directory = credentials({ 'database-url': 'postgres://gpd:secret-a@127.0.0.1:1/gpd' });
    const env = { GPD_DATA_DIR: dataDir, CREDENTIALS_DIRECTORY: directory };
    const ran = await runGpd(['tenants', 'list'], { env });
    expect(ran.code).not.toBe(0);
    expect(ran.stdout + ran.stderr).not.toContain('secret-a');
  });
});
