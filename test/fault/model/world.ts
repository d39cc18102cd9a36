import { createHash, randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { startApp } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import type { RunningApp } from '../../../src/ops/running.ts';
import type { SealedBundle } from '../../../src/schema/bundle.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { type Ask, ask, postJson, type Reply } from '../../support/http.ts';
import type { Idp } from '../../support/oidc.ts';
import { initGpd, type SealTarget } from '../../support/server.ts';

/** The real application on a real SQLite file, over HTTP, and beside it what an oracle in memory knows. */

export interface Real {
  readonly target: SealTarget;
  readonly idp: Idp;
  post(path: string, body: unknown, credential?: string, headers?: Ask['headers']): Promise<Reply>;
  get(path: string): Promise<Reply>;
  subject(visitorId: string): string;
  staff(role: 'reviewer' | 'dpo'): string;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startReal(idp: Idp): Promise<Real> {
  const { dataDir, targets } = await initGpd();
  const key = `gpd_sk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  await execute(
    dataDir,
    `INSERT INTO api_keys (kid, id, scope, name, hash, created_at)
      VALUES ('${KID}', 'key_${hash.slice(0, 26)}', 'secret', 'model', '${hash}', 1)`,
  );
  const off = {
    GPD_RATE_INGEST: 'off',
    GPD_RATE_PRIVACY: 'off',
    GPD_RATE_CONSENT: 'off',
  };
  const environment = { GPD_DATA_DIR: dataDir, GPD_PORT: '0', ...off, ...idp.settings };
  const config = loadConfig({ environment, flags: {} });
  const start = (): Promise<RunningApp> =>
    startApp(config, {
      log: pino({ level: 'silent' }),
      onFatal: (error) => {
        throw error;
      },
    });
  let app = await start();
  const bearer = (credential: string): Record<string, string> =>
    credential === '' ? {} : { authorization: `Bearer ${credential}` };
  const token = (claims: Readonly<Record<string, unknown>>): string =>
    idp.forge(idp.claims({ gpd_tenant: KID, ...claims }));
  const [target] = targets;
  if (!target) throw new Error('there is no tenant');
  return {
    target,
    idp,
    post: (path, body, credential = key, headers = {}) =>
      postJson(app.url, path, body, { ...bearer(credential), ...headers }),
    get: (path) => ask(app.url, path, { headers: bearer(key) }),
    subject: (visitorId) => token({ sub: `s-${visitorId}`, gpd_role: 'subject', gpd_visitor: visitorId }),
    staff: (role) => token({ sub: `staff-${role}`, gpd_role: role }),
    async restart() {
      await app.stop();
      app = await start();
    },
    stop: () => app.stop(),
  };
}

export interface Contest {
  readonly contestId: string;
  outcome: 'upheld' | 'overturned' | null;
}

export interface Request {
  readonly requestId: string;
  readonly device: Device;
  readonly bundle: SealedBundle;
  readonly token: string;
  readonly session: string;
  readonly class: string;
  alive: boolean;
  contest: Contest | null;
}

export interface Device {
  /** The device's signals are derived from it. */
  readonly name: string;
  readonly bot: boolean;
  visitorId: string;
  /** It was seen since it was last erased. */
  seen: boolean;
  /** Its visitorId leads to what is held. */
  reached: boolean;
  override: boolean;
}

export type Reason = 'never-asked' | 'granted' | 'denied' | 'withdrawn' | 'erased';

export interface Person {
  readonly principalId: string;
  reason: Reason;
  /** Something was written since the last erasure, under a key that another erasure destroys. */
  keyed: boolean;
  /** Place of the last event; null before the first one. */
  place: { readonly seq: number; readonly hash: string } | null;
}

export interface Model {
  readonly devices: readonly Device[];
  readonly people: readonly Person[];
  readonly requests: Request[];
  /** Entries of the log: its genesis and the purpose that a tenant is made with. */
  log: number;
}

export function newModel(): Model {
  const device = (bot: boolean): Device => ({
    name: randomBytes(16).toString('hex'),
    bot,
    visitorId: '',
    seen: false,
    reached: false,
    override: false,
  });
  const person = (name: string): Person => ({
    principalId: name,
    reason: 'never-asked',
    keyed: false,
    place: null,
  });
  return {
    devices: [device(false), device(false), device(true)],
    people: ['ada', 'grace', 'barbara'].map(person),
    requests: [],
    log: 2,
  };
}

/** Removes everything about an erased device except what `keep` names. */
export function forgetDevice(model: Model, device: Device, keep: { readonly defence: boolean }): void {
  for (const request of model.requests) {
    if (request.device !== device || !request.alive) continue;
    if (keep.defence && request.contest && request.contest.outcome === null) continue;
    request.alive = false;
    request.contest = null;
  }
  device.seen = false;
  if (!keep.defence) device.override = false;
  // A row that is kept for a person's defence stays within their reach.
  const isKept =
    device.override || model.requests.some((request) => request.device === device && request.alive);
  device.reached &&= isKept;
}
