import { createHash, randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { KID, ORIGIN, OTHER, OTHER_ORIGIN } from '../../../support/constants.ts';
import { execute, executeSealed } from '../../../support/database.ts';
import { type Ask, ask, postJson, type Reply } from '../../../support/http.ts';
import { type GpdProcess, startProcess } from '../../../support/process.ts';
import { type Gpd, initGpd, startGpd } from '../../../support/server.ts';

/** A running consent API with a key of every scope, and the calls that most tests make. */

/** Every new tenant has this purpose; GPC opts out of it. */
export const PURPOSE = 'device-identification';

const PREFIX = { publishable: 'pk', secret: 'sk', 'read-only': 'ro', operator: 'op' } as const;
type Scope = keyof typeof PREFIX;

export type Keys = Readonly<Record<Scope | 'revoked' | 'foreign', string>>;

export interface Purpose {
  readonly id: string;
  readonly gpc?: 'opt-out' | 'ask' | 'ignore';
  readonly ttlDays?: number;
}

export interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly proof: { readonly seq: number; readonly hash: string };
  readonly policyVersion: number;
  readonly expiresAt: string | null;
  readonly given: string;
  readonly subject?: string;
}

export interface Written {
  readonly entries: readonly { readonly purpose: string; readonly seq: number; readonly hash: string }[];
  readonly seq: number;
  readonly hash: string;
}

export interface Event {
  readonly seq: number;
  readonly type: string;
  readonly purpose: string;
  readonly source: string;
  readonly class?: string;
}

export type Action = 'grant' | 'deny' | 'withdraw';

export interface Api<G extends Gpd = Gpd> {
  readonly gpd: G;
  readonly keys: Keys;
  get(path: string, credential?: string, headers?: Ask['headers']): Promise<Reply>;
  /** With the secret key unless another credential is named; '' is none. */
  post(path: string, body: unknown, credential?: string, headers?: Ask['headers']): Promise<Reply>;
  /** A write by the secret key that has to succeed. */
  write(action: Action, body: WriteBody): Promise<Written>;
  /** A check by the secret key that has to be answered. */
  check(principalId: string, purpose?: string): Promise<Decision>;
  session(principalId: string): Promise<string>;
  /** The history of a person, newest first. */
  events(principalId: string | null): Promise<readonly Event[]>;
  stop(): Promise<unknown>;
}

export interface WriteBody {
  readonly principalId: string;
  readonly purposes?: readonly string[];
  readonly policyVersion?: number;
  readonly gpc?: boolean;
  readonly overGpc?: boolean;
}

export const bearer = (credential: string): Record<string, string> =>
  credential === '' ? {} : { authorization: `Bearer ${credential}` };

function createKey(kid: string, scope: Scope, revokedAt: number | null = null) {
  const key = `gpd_${PREFIX[scope]}_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const sql = `INSERT INTO api_keys (kid, id, scope, name, hash, created_at, revoked_at)
    VALUES ('${kid}', 'key_${hash.slice(0, 26)}', '${scope}', 'test', '${hash}', 1, ${revokedAt})`;
  return { key, sql };
}

/** Straight into the table: a start of the program for each would cost more than the tests. */
export async function addKeys(dataDir: string, kid = KID): Promise<Keys> {
  const newKeys = {
    publishable: createKey(kid, 'publishable'),
    secret: createKey(kid, 'secret'),
    'read-only': createKey(kid, 'read-only'),
    operator: createKey(kid, 'operator'),
    revoked: createKey(kid, 'secret', 2),
    foreign: createKey(OTHER, 'secret'),
  };
  await execute(dataDir, ...Object.values(newKeys).map(({ sql }) => sql));
  return Object.fromEntries(Object.entries(newKeys).map(([name, { key }]) => [name, key])) as Keys;
}

const purposeSql = ({ id, gpc = 'opt-out', ttlDays = 180 }: Purpose): string =>
  `INSERT INTO purposes (kid, id, title, description, lawful_basis, gpc, ttl_days)
    VALUES ('${KID}', '${id}', '${id}', '', 'consent', '${gpc}', ${ttlDays})`;

export interface ApiOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly purposes?: readonly Purpose[];
  /** The server's clock. */
  readonly clock?: () => number;
}

/** Two tenants, `acme` and `other`; keys and purposes are those of `acme` unless they are `foreign`. */
async function prepare({ settings = {}, purposes = [] }: ApiOptions) {
  const { dataDir } = await initGpd([
    { kid: KID, origins: [ORIGIN] },
    { kid: OTHER, origins: [OTHER_ORIGIN] },
  ]);
  const keys = await addKeys(dataDir);
  await executeSealed(dataDir, ...purposes.map(purposeSql));
  return { keys, options: { dataDir, settings } };
}

export async function startApi(apiOptions: ApiOptions = {}): Promise<Api> {
  const { keys, options } = await prepare(apiOptions);
  const { clock } = apiOptions;
  return apiOf(await startGpd({ ...options, ...(clock && { app: { clock } }) }), keys);
}

/** The built program. */
export async function startApiProcess(apiOptions: ApiOptions = {}): Promise<Api<GpdProcess>> {
  const { keys, options } = await prepare(apiOptions);
  return apiOf(await startProcess(options), keys);
}

export function apiOf<G extends Gpd>(gpd: G, keys: Keys): Api<G> {
  const { url } = gpd;
  const post: Api['post'] = (path, body, credential = keys.secret, headers = {}) =>
    postJson(url, path, body, { ...bearer(credential), ...headers });
  return {
    gpd,
    keys,
    post,
    get: (path, credential = keys.secret, headers = {}) =>
      ask(url, path, { headers: { ...bearer(credential), ...headers } }),
    async write(action, body) {
      const reply = await post(`/v1/consent/${action}`, { purposes: [PURPOSE], ...body });
      expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 201 });
      return reply.json() as Written;
    },
    async check(principalId, purpose = PURPOSE) {
      const reply = await post('/v1/consent/can-process', { principalId, purpose });
      expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 200 });
      return reply.json() as Decision;
    },
    async session(principalId) {
      const reply = await post('/v1/sessions', { principalId });
      expect(reply.status).toBe(201);
      return (reply.json() as { token: string }).token;
    },
    async events(principalId) {
      const reply = await post('/v1/consent/history', { principalId });
      expect(reply.status).toBe(200);
      return (reply.json() as { events: readonly Event[] }).events;
    },
    stop: () => gpd.stop(),
  };
}

/** A browser's principal: its secret, and the id that belongs to it. */
export function createBrowser(): { principalId: string; principalSecret: string } {
  const secret = randomBytes(32);
  const principalId = `b_${createHash('sha256').update(secret).digest('base64url')}`;
  return { principalId, principalSecret: secret.toString('base64url') };
}

/** The tokens of principal sessions are kept as SHA-256. */
export const expireSession = (dataDir: string, token: string): Promise<unknown> =>
  execute(
    dataDir,
    `UPDATE principal_sessions SET expires_at = ${Date.now() - 1}
      WHERE hash = '${createHash('sha256').update(token).digest('hex')}'`,
  );
