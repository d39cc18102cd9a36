import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { type Environment, gpdJson, tempDir } from '../../support/command.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { startPostgres } from '../../support/postgres.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';
import type { SealTarget } from '../../support/server.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { startPgBouncer } from './pgbouncer.ts';

/** Several nodes of the built program on one PostgreSQL, each with a data directory of its own, behind one balancer. */

export interface Cluster {
  readonly nodes: readonly GpdProcess[];
  /** The balancer's. */
  readonly url: string;
  readonly balancer: Balancer;
  readonly target: SealTarget;
  /** A secret, a read-only and an operator key of the tenant. */
  readonly keys: { readonly secret: string; readonly readOnly: string; readonly operator: string };
  /** Rows as PostgreSQL holds them, past every node and pool. */
  readonly sql: <Row = Record<string, unknown>>(text: string, values?: readonly unknown[]) => Promise<Row[]>;
  /** The command line on a machine of its own. */
  readonly json: <T = Record<string, unknown>>(args: readonly string[]) => Promise<T>;
  /** One node more, behind the balancer too. */
  addNode(options?: { readonly program: string }): Promise<GpdProcess>;
  /** No node is at a fault or dies of one: their logs hold no `fault`, and PostgreSQL's no deadlock. */
  faults(): readonly string[];
  stop(): Promise<void>;
}

export interface ClusterOptions {
  readonly nodes?: number;
  readonly settings?: Environment | ((url: string) => Promise<Environment>);
  /** Through PgBouncer in transaction pooling. */
  readonly pooled?: boolean;
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const postgres = await startPostgres();
  const direct = await postgres.freshUrl();
  const pgBouncer = options.pooled === true ? await startPgBouncer(direct) : null;
  const location = pgBouncer?.url ?? direct;
  const balancer = await startBalancer();
  const home = join(tempDir('cluster'), 'home');
  const clusterSettings = options.settings ?? {};
  const base = {
    GPD_DATABASE_URL: location,
    GPD_MASTER_KEY_FILE: join(home, 'master.key'),
    GPD_BASE_URL: balancer.url,
    GPD_TRUSTED_PROXIES: '127.0.0.1',
  };
  const settings = {
    ...base,
    ...(typeof clusterSettings === 'function' ? await clusterSettings(balancer.url) : clusterSettings),
  };
  const { GPD_MASTER_KEY_FILE: _, ...first } = settings;
  const tenant = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID, '--origin', ORIGIN], {
    env: { ...first, GPD_DATA_DIR: home },
  });
  const env = { ...settings, GPD_DATA_DIR: home };
  const [secret, readOnly, operator] = await Promise.all(
    ['secret', 'read-only', 'operator'].map(async (scope) => {
      const args = ['apikeys', 'create', KID, '--scope', scope, '--name', scope];
      return (await gpdJson<{ key: string }>(args, { env })).key;
    }),
  );
  const pool = new pg.Pool({ connectionString: direct, max: 4 });
  // A connection that is at rest when PostgreSQL stops.
  pool.on('error', () => {});
  const nodes: GpdProcess[] = [];
  async function addNode(other: { readonly program?: string } = {}): Promise<GpdProcess> {
    const dataDir = join(tempDir('node'), 'gpd-data');
    mkdirSync(dataDir, { mode: 0o700 });
    const started = await startProcess({ dataDir, settings, ...other });
    // The node prints its public origin, which is the balancer's.
    const node = { ...started, url: `http://127.0.0.1:${started.port}` };
    nodes.push(node);
    balancer.add(node.port);
    return node;
  }
  await Promise.all(Array.from({ length: options.nodes ?? 3 }, () => addNode()));
  return {
    nodes,
    url: balancer.url,
    balancer,
    target: { kid: KID, publicKey: Buffer.from(tenant.publicKey, 'base64') },
    keys: { secret: secret ?? '', readOnly: readOnly ?? '', operator: operator ?? '' },
    sql: async <Row>(text: string, values: readonly unknown[] = []) =>
      (await pool.query(text, [...values])).rows as Row[],
    json: (args) => gpdJson(args, { env }),
    addNode,
    faults: () => [
      ...nodes.flatMap(
        (node) => node.logs().match(/^.*"event":"(?:fault|[a-z-]+-failed|fail-stop)".*$/gm) ?? [],
      ),
      ...(postgres.log().match(/^.*deadlock detected.*$/gm) ?? []),
    ],
    async stop() {
      await Promise.all(nodes.map((node) => node.kill9()));
      await balancer.stop();
      await pool.end();
      await pgBouncer?.stop();
      await postgres.stop();
    },
  };
}

export const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
