import { gpdJson, type Ran, runGpd } from '../../support/command.ts';
import { dumpDatabase, execute } from '../../support/database.ts';
import { initGpd, type TenantSpec } from '../../support/server.ts';

/** An installation that only one test uses, so that tests can run concurrently. */
export interface Own {
  readonly dataDir: string;
  /** Runs a command on a standard input that answers yes to every question. */
  readonly gpd: (...args: string[]) => Promise<Ran>;
  readonly json: <T = Record<string, unknown>>(...args: string[]) => Promise<T>;
  /** All rows, without revisions: one that was drawn and not used is no change. */
  readonly dump: () => Promise<Record<string, string[]>>;
  readonly query: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
}

export async function createOwn(tenants?: readonly TenantSpec[]): Promise<Own> {
  const { dataDir } = await initGpd(tenants);
  const env = { GPD_DATA_DIR: dataDir };
  return {
    dataDir,
    gpd: (...args) => runGpd(args, { env, input: 'yes\n' }),
    json: <T>(...args: string[]) => gpdJson<T>(args, { env }),
    dump: () => dumpDatabase(dataDir, ['revisions']),
    query: (sql) => execute(dataDir, sql),
  };
}
