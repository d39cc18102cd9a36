import { join } from 'node:path';
import { expect } from 'vitest';
import { type Environment, gpdJson, type Ran, runProgram, tempDir } from '../../support/command.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { type Ask, ask, postJson, type Reply } from '../../support/http.ts';
import { type Idp, startIdp } from '../../support/oidc.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';
import type { SealTarget } from '../../support/server.ts';

/** One installation that outlives many servers: its tenant, its keys, and who may ask. */

export type Rows = readonly Readonly<Record<string, unknown>>[];

export interface House {
  readonly dataDir: string;
  readonly target: SealTarget;
  readonly idp: Idp;
  /** Secret key of the tenant. */
  readonly key: string;
  /** A server on these data; it takes over the calls below. */
  start(settings?: Environment): Promise<GpdProcess>;
  post(path: string, body: unknown, credential?: string, headers?: Ask['headers']): Promise<Reply>;
  get(path: string): Promise<Reply>;
  /** A token of the subject whom the provider vouches for by this visitorId. */
  subject(visitorId: string): string;
  staff(role: 'reviewer' | 'dpo'): string;
  cli(args: readonly string[]): Promise<Ran>;
  /** `gpd consent verify`: the log, its seals and everything that is sealed. */
  verify(): Promise<number>;
  sql(statement: string): Promise<Rows>;
  stop(): Promise<void>;
}

export interface HouseOptions {
  readonly settings?: Environment;
  readonly dataDir?: string;
  /** Another database than SQLite's file. */
  readonly sql?: (statement: string) => Promise<Rows>;
}

const bearer = (credential: string): Record<string, string> =>
  credential === '' ? {} : { authorization: `Bearer ${credential}` };

export async function createHouse(options: HouseOptions = {}): Promise<House> {
  const idp = await startIdp();
  const dataDir = options.dataDir ?? join(tempDir('fault'), 'gpd-data');
  const environment: Environment = { ...options.settings, GPD_DATA_DIR: dataDir };
  const init = ['init', '--tenant', KID, '--origin', ORIGIN];
  const { publicKey } = await gpdJson<{ publicKey: string }>(init, { env: environment });
  const create = ['apikeys', 'create', KID, '--scope', 'secret', '--name', 'fault'];
  const { key } = await gpdJson<{ key: string }>(create, { env: environment });
  const serving = { ...environment, ...idp.settings, GPD_RATE_PRIVACY: 'off', GPD_RATE_CONSENT: 'off' };
  let url = '';
  const post: House['post'] = (path, body, credential = key, headers = {}) =>
    postJson(url, path, body, { ...bearer(credential), ...headers });
  const token = (claims: Readonly<Record<string, unknown>>): string =>
    idp.forge(idp.claims({ gpd_tenant: KID, ...claims }));
  const cli: House['cli'] = (args) => runProgram(args, { env: environment });
  return {
    dataDir,
    idp,
    key,
    target: { kid: KID, publicKey: Buffer.from(publicKey, 'base64') },
    async start(settings = {}) {
      const gpd = await startProcess({ dataDir, settings: { ...serving, ...settings } });
      url = gpd.url;
      return gpd;
    },
    post,
    get: (path) => ask(url, path, { headers: bearer(key) }),
    subject: (visitorId) => token({ sub: `s-${visitorId}`, gpd_role: 'subject', gpd_visitor: visitorId }),
    staff: (role) => token({ sub: `staff-${role}`, gpd_role: role }),
    cli,
    async verify() {
      const ran = await cli(['consent', 'verify', KID, '--json']);
      expect({ code: ran.code, out: ran.stdout, err: ran.stderr }).toMatchObject({ code: 0 });
      const { ok, size } = JSON.parse(ran.stdout) as { ok: boolean; size: number };
      expect(ok).toBe(true);
      return size;
    },
    sql: options.sql ?? ((statement) => execute(dataDir, statement)),
    stop: () => idp.stop(),
  };
}
