import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { initGpd, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';

/** A database with a trigger, a view or a table that no migration makes is refused, by a sentence that names it. */

const WHAT_TO_DO = 'find out who made it, then drop it or restore an earlier backup';

describe('on SQLite', () => {
  it.each([
    ['table stolen', 'CREATE TABLE stolen (x TEXT)'],
    ['view seen', 'CREATE VIEW seen AS SELECT * FROM decisions'],
    [
      'trigger kept on decisions',
      'CREATE TRIGGER kept BEFORE DELETE ON decisions BEGIN SELECT RAISE(IGNORE); END',
    ],
  ])('a %s', async (name, sql) => {
    const { dataDir } = await initGpd();
    const env = { GPD_DATA_DIR: dataDir };
    await execute(dataDir, sql);
    const sentence = `has ${name}, which no migration of gpd makes: ${WHAT_TO_DO}`;
    await expect(startGpd({ dataDir })).rejects.toThrow(
      `gpd serve ended with 78: gpd: the database ${sentence}`,
    );
    for (const command of [['migrate'], ['migrate', '--dry-run']]) {
      const ran = await runGpd(command, { env });
      expect(ran).toMatchObject({ code: 78, stderr: `gpd: the database ${sentence}\n` });
    }
    const file = join(tempDir('backup'), 'gpd.backup');
    expect(await runGpd(['backup', file], { env })).toMatchObject({ code: 0 });
    const restored = await runGpd(['restore', file, '--yes'], { env });
    expect(restored).toMatchObject({ code: 1, stderr: `gpd: ${file} ${sentence}\n` });
  });
});

describeWithTool('on PostgreSQL', await missingPostgres(), () => {
  async function install() {
    const url = await sharedPostgres().freshUrl();
    const dataDir = join(tempDir('foreign'), 'gpd-data');
    const env = { GPD_DATABASE_URL: url, GPD_DATA_DIR: dataDir };
    await gpdJson(['init', '--tenant', KID, '--origin', ORIGIN], { env });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return { dataDir, env, client };
  }

  it('a table, view, trigger, rule or policy in the schema of gpd', async () => {
    const { dataDir, env, client } = await install();
    await client.query(`CREATE TABLE stolen (x text); CREATE MATERIALIZED VIEW seen AS SELECT 1 AS one;
      CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE TRIGGER kept BEFORE DELETE ON decisions FOR EACH ROW EXECUTE FUNCTION keep();
      CREATE RULE unrevoked AS ON UPDATE TO api_keys DO INSTEAD NOTHING;
      CREATE POLICY hidden ON links USING (false);
      ALTER EXTENSION plpgsql ADD TABLE decisions`);
    const start = startGpd({ dataDir, settings: env });
    await expect(start).rejects.toThrow(
      /ended with 78: gpd: the database has policy hidden on links, rule unrevoked on api_keys, /,
    );
    await expect(runGpd(['migrate'], { env })).resolves.toMatchObject({ code: 78 });
    const doctor = await runGpd(['doctor', '--json'], { env });
    const { checks } = JSON.parse(doctor.stdout) as {
      checks: { id: string; status: string; detail: string }[];
    };
    const { detail = '' } =
      checks.find(({ id, status }) => id === 'database.schema' && status === 'fail') ?? {};
    for (const name of ['rule unrevoked on api_keys', 'table stolen', 'trigger kept on decisions'])
      expect(detail).toContain(name);
    await client.end();
  });

  it('leaves other schemas and extensions alone', async () => {
    const { dataDir, env, client } = await install();
    await client.query(`CREATE EXTENSION pg_stat_statements; CREATE SCHEMA other; CREATE TABLE other.mine (x text);
      CREATE FUNCTION helper() RETURNS int LANGUAGE sql AS 'SELECT 1'`);
    const gpd = await startGpd({ dataDir, settings: env });
    await gpd.stop();
    await client.end();
  });
});
