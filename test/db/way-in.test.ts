import { chmodSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/db/engine.ts';
import { rowsOf } from '../../src/db/sql.ts';
import { withClosing } from '../../src/lib/collections.ts';
import { tempDir } from '../support/command.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { NOT_LOOPBACK, selfSigned } from '../support/self-signed.ts';
import { describeWithTool } from '../support/tools.ts';

/** A connection needs the server's certificate and a source of its password. */

describeWithTool('the way into PostgreSQL', await missingPostgres(), () => {
  let postgres: PostgresServer;
  let address: URL;
  const files = tempDir('way-in');
  beforeAll(async () => {
    postgres = await startPostgres();
    address = new URL(await postgres.freshUrl());
    for (const [name, text] of Object.entries(selfSigned('named'))) {
      writeFileSync(join(files, name), text);
      if (!name.startsWith('server.')) continue;
      const copy = join(postgres.databaseDir, name);
      writeFileSync(copy, text, { mode: 0o600 });
      const { uid, gid } = statSync(postgres.databaseDir);
      chownSync(copy, uid, gid);
    }
    writeFileSync(join(files, 'another.crt'), selfSigned('local')['ca.crt'] ?? '');
    const admin = new pg.Client({ connectionString: address.href });
    await admin.connect();
    await admin.query("ALTER SYSTEM SET ssl_cert_file = 'server.crt'");
    await admin.query("ALTER SYSTEM SET ssl_key_file = 'server.key'");
    await admin.query('ALTER SYSTEM SET ssl = on');
    await admin.query('SELECT pg_reload_conf()');
    await admin.end();
  });
  afterAll(() => postgres.stop());
  afterEach(() => vi.unstubAllEnvs());

  /**
   * @returns true if the connection is encrypted
   * @throws {Error} if the server has no such connection
   */
  const isEncrypted = (location: string): Promise<boolean> =>
    withClosing(openDatabase({ location }), async ({ read }) => {
      const answer = await read.raw('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
      return rowsOf<{ ssl: boolean }>(answer)[0]?.ssl === true;
    });

  function urlOf(host: string, parameters: Readonly<Record<string, string>> = {}, password = true): string {
    const url = new URL(address);
    url.hostname = host;
    if (!password) url.password = '';
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }
  const by = (name: string) => ({ sslrootcert: join(files, name) });

  it('is open to the CA that signed its certificate, and to no other', async () => {
    await expect
      .poll(() => isEncrypted(urlOf('localhost', { sslmode: 'verify-full', ...by('ca.crt') })))
      .toBe(true);
    for (const parameters of [by('another.crt'), {}])
      await expect(
        isEncrypted(urlOf('localhost', { sslmode: 'verify-full', ...parameters })),
      ).rejects.toThrow(/certificate/);
  });

  it('refuses a certificate for another name', async () => {
    const url = urlOf('127.0.0.1', { sslmode: 'verify-full', ...by('ca.crt') });
    await expect(isEncrypted(url)).rejects.toThrow(/altnames|does not match/i);
  });

  it('is encrypted and checked without a word of the URL, for a host that is not loopback', async () => {
    await expect(isEncrypted(urlOf(NOT_LOOPBACK))).rejects.toThrow(/certificate/);
    expect(await isEncrypted(urlOf(NOT_LOOPBACK, by('ca.crt')))).toBe(true);
    await expect(isEncrypted(urlOf(NOT_LOOPBACK, by('another.crt')))).rejects.toThrow(/certificate/);
    expect(await isEncrypted(urlOf(NOT_LOOPBACK, { sslmode: 'disable' }))).toBe(false);
    expect(await isEncrypted(urlOf('localhost'))).toBe(false);
  });

  it('takes the password from the file that PGPASSFILE names', async () => {
    const { port, username, password, pathname } = address;
    const line = (secret: string): string => `localhost:${port}:${pathname.slice(1)}:${username}:${secret}\n`;
    writeFileSync(join(files, 'right'), line(password), { mode: 0o600 });
    writeFileSync(join(files, 'wrong'), line('wrong'), { mode: 0o600 });
    writeFileSync(join(files, 'open'), line(password));
    chmodSync(join(files, 'open'), 0o644);
    const url = urlOf('localhost', {}, false);
    vi.stubEnv('PGPASSFILE', join(files, 'right'));
    expect(await isEncrypted(url)).toBe(false);
    for (const refused of ['wrong', 'open']) {
      vi.stubEnv('PGPASSFILE', join(files, refused));
      await expect(isEncrypted(url)).rejects.toThrow(/password/);
    }
  });
});
