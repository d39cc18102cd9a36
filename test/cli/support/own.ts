import { gpdJson, type Ran, runGpd } from '../../support/command.ts';
import { dumpDatabase, execute } from '../../support/database.ts';
import { initGpd, type TenantSpec } from '../../support/server.ts';

/** Splits a line as a shell does, without redirections. */
export function wordsOf(line: string): string[] {
  const [typed = ''] = line.split(/ [<>|] /);
  return [...typed.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** An installation that only one test uses, so that tests can run concurrently. */
export interface Own {
  readonly dataDir: string;
  readonly env: { readonly GPD_DATA_DIR: string };
  /** Runs a line as it is typed behind `gpd`, and then further words, on a standard input that answers yes to every question. */
  readonly gpd: (line: string, ...words: readonly string[]) => Promise<Ran>;
  /** Runs a line with --json. @returns the value that it printed */
  readonly json: <T = Record<string, unknown>>(line: string, ...words: readonly string[]) => Promise<T>;
  /** All rows, without revisions: one that was drawn and not used is no change. */
  readonly dump: () => Promise<Record<string, string[]>>;
  readonly query: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/** Runs commands on an existing installation. */
export function ownOf(dataDir: string): Own {
  const env = { GPD_DATA_DIR: dataDir };
  return {
    dataDir,
    env,
    gpd: (line, ...words) => runGpd([...wordsOf(line), ...words], { env, input: 'yes\n' }),
    json: <T>(line: string, ...words: readonly string[]) => gpdJson<T>([...wordsOf(line), ...words], { env }),
    dump: () => dumpDatabase(dataDir, ['revisions']),
    query: (sql) => execute(dataDir, sql),
  };
}

export async function createOwn(tenants?: readonly TenantSpec[]): Promise<Own> {
  return ownOf((await initGpd(tenants)).dataDir);
}
