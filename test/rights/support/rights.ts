import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { IngestResponse } from '../../../src/schema/responses.ts';
import { addApiKey } from '../../support/api-key.ts';
import { gpdJson, tempDir } from '../../support/command.ts';
import { KID, ORIGIN, OTHER, OTHER_ORIGIN } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectCore, post, SEEN_WITHIN, sessionOf } from '../../support/expect.ts';
import { type Ask, ask, postJson, type Reply } from '../../support/http.ts';
import { type Idp, type IdpOptions, startIdp } from '../../support/oidc.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';
import { desktopChrome, headlessChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import {
  type Gpd,
  type GpdOptions,
  type InProcessOptions,
  type SealTarget,
  startGpd,
} from '../../support/server.ts';

/** A running gpd that trusts a real identity provider, with two tenants, and people who visit it. */

export type Claims = Readonly<Record<string, unknown>>;

/** One visit, with what the browser keeps of it. */
export interface Visit {
  readonly answer: IngestResponse;
  readonly requestId: string;
  readonly visitorId: string;
  /** The value of gp_session. */
  readonly session: string;
  readonly token: string;
}

export type Rights<G extends Gpd = Gpd> = ReturnType<typeof rightsOf<G>>;

export interface VisitOptions {
  readonly target?: SealTarget;
  readonly origin?: string;
  /** 32 characters that make the device. */
  readonly device?: string;
  readonly bot?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signals?: Record<string, unknown>;
  /** The visit that this one supersedes, in whose session it is sent. */
  readonly after?: Visit;
}

export interface MeChange {
  readonly token?: unknown;
  readonly session?: string | null;
  readonly origin?: string | null;
  /** Beside token and action. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

type RightsOptions = GpdOptions & { readonly idp?: IdpOptions };

async function startBy<G extends Gpd>(start: (options: GpdOptions) => Promise<G>, options: RightsOptions) {
  const idp = await startIdp(options.idp);
  const gpd = await start({
    tenants: [
      { kid: KID, origins: [ORIGIN, 'https://second.example'] },
      { kid: OTHER, origins: [OTHER_ORIGIN, ORIGIN] },
    ],
    ...options,
    settings: { ...idp.settings, GPD_RATE_PRIVACY: 'off', ...options.settings },
  });
  return rightsOf(gpd, idp, gpd.targets as [SealTarget, SealTarget]);
}

/** @param app of the server in this process */
export const startRights = ({
  app,
  ...options
}: RightsOptions & Pick<InProcessOptions, 'app'> = {}): Promise<Rights> =>
  startBy((all) => startGpd({ ...all, ...(app && { app }) }), options);

/** The built program. */
export const startRightsProcess = (options: RightsOptions = {}): Promise<Rights<GpdProcess>> =>
  startBy(startProcess, options);

/** On PostgreSQL, in a data directory of its own, with one tenant. */
export async function startRightsOn(url: string, app: InProcessOptions['app'] = {}): Promise<Rights> {
  const dataDir = join(tempDir('rights-postgres'), 'gpd-data');
  const env = { GPD_DATABASE_URL: url, GPD_DATA_DIR: dataDir };
  const { publicKey } = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID, '--origin', ORIGIN], {
    env,
  });
  const target = { kid: KID, publicKey: Buffer.from(publicKey, 'base64') };
  const idp = await startIdp();
  const settings = { ...idp.settings, GPD_DATABASE_URL: url, GPD_RATE_PRIVACY: 'off' };
  return rightsOf(await startGpd({ dataDir, settings, app }), idp, [target, target]);
}

export function rightsOf<G extends Gpd>(gpd: G, idp: Idp, [acme, other]: readonly [SealTarget, SealTarget]) {
  /** POST with a bearer token; '' is none. */
  const call = (path: string, body: unknown, token = '', headers: Ask['headers'] = {}): Promise<Reply> =>
    postJson(gpd.url, path, body, {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    });
  return {
    gpd,
    idp,
    acme,
    other,
    call,
    async visit(options: VisitOptions = {}): Promise<Visit> {
      const { target = acme, origin = ORIGIN, device, bot = false, headers = {}, signals, after } = options;
      const deviceSignals = signals ?? (bot ? headlessChrome(device) : desktopChrome(device));
      const bundle = createBundle(target, {
        signals: deviceSignals,
        ...(after && { after: after.requestId }),
      });
      const session = after && { cookie: `gp_session=${after.session}` };
      const reply = await post(gpd.url, bundle, { origin, ...session, ...headers });
      const answer = expectCore(reply, 'ok');
      return {
        answer,
        requestId: answer.requestId,
        visitorId: answer.visitorId ?? '',
        session: sessionOf(reply),
        token: answer.transparencyToken ?? '',
      };
    },
    /** A bearer token with these claims. */
    as: (claims: Claims): Promise<string> => idp.token({ gpd_tenant: KID, ...claims }),
    /** POST /me as the browser of this visit. */
    me(
      visit: Visit,
      action: string,
      { token = visit.token, session = visit.session, origin = ORIGIN, body, ...options }: MeChange = {},
    ): Promise<Reply> {
      const headers = {
        ...options.headers,
        ...(session === null ? {} : { cookie: `theme=dark; gp_session=${session}` }),
        ...(origin === null ? {} : { origin }),
      };
      return call('/me', { token, action, ...body }, '', headers);
    },
    decision: (requestId: string, key: string): Promise<Reply> =>
      ask(gpd.url, `/v1/decisions/${requestId}`, { headers: { authorization: `Bearer ${key}` } }),
    sql: (...statements: readonly string[]) => execute(gpd.dataDir, ...statements),
    async stop() {
      await gpd.stop();
      await idp.stop();
    },
  };
}

/** An API key that the running server knows. */
export async function apiKey(rights: Rights, scope: string, kid = KID): Promise<string> {
  const key = await addApiKey(rights.gpd, scope, kid);
  await vi.waitFor(async () => {
    const reply = await rights.decision('x', key);
    if (reply.status === 401) throw new Error('the key is not known yet');
  }, 8000);
  return key;
}

/** Keeps what transparency shows of the signals, from the visits on that come after this. */
export async function keepSummaries(rights: Rights): Promise<void> {
  await rights.gpd.json(['tenants', 'set', KID, 'transparency.retain=summary']);
  await vi.waitFor(async () => {
    await rights.visit();
    expect(await rights.sql('SELECT 1 FROM signal_summaries')).not.toEqual([]);
  }, SEEN_WITHIN);
}
