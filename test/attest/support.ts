import type { IngestResponse } from '../../src/schema/responses.ts';
import { ORIGIN } from '../support/constants.ts';
import { expectCore, post, sessionOf } from '../support/expect.ts';
import { postJson, type Reply } from '../support/http.ts';
import { desktopChrome } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import type { Gpd, SealTarget } from '../support/server.ts';

export const SUB = 'https://sub.shop.example';

export const PURPOSES = ['device-identification', 'device-attestation'];

export interface Visit {
  readonly answer: IngestResponse;
  readonly token: string;
  readonly session: string;
  readonly origin: string;
}

/** A machine without a graphics chip: it looks like every other of its kind. */
export function twin(device = 'twin') {
  const signals = desktopChrome(device);
  Object.assign(signals.graphics, { renderer: 'llvmpipe (LLVM 15.0.7, 256 bits)' });
  return signals;
}

export interface VisitOptions {
  readonly origin?: string;
  readonly purposes?: readonly string[];
  readonly signals?: Record<string, unknown>;
  readonly consent?: object;
  readonly target?: SealTarget;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function visit(gpd: Gpd, options: VisitOptions = {}): Promise<Visit> {
  const { origin = ORIGIN, purposes = PURPOSES, signals = twin(), target = gpd.targets[0]! } = options;
  const consent = { purposes, ...options.consent };
  const reply = await post(gpd.url, createBundle(target, { signals, consent }), {
    origin,
    ...options.headers,
  });
  const answer = expectCore(reply, 'ok');
  return { answer, token: answer.transparencyToken ?? '', session: sessionOf(reply), origin };
}

export interface CallOptions {
  readonly origin?: string;
  readonly session?: string;
  readonly token?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export function call(
  gpd: Gpd,
  path: 'options' | 'verify',
  at: Visit,
  body: object,
  { origin = at.origin, session = at.session, token = at.token, headers = {} }: CallOptions = {},
): Promise<Reply> {
  return postJson(
    gpd.url,
    `/_fp/attest/v1/${path}`,
    { token, ...body },
    { origin, cookie: `gp_session=${session}`, ...headers },
  );
}

/** A challenge for this visit. */
export async function challengeOf(gpd: Gpd, at: Visit, ceremony = 'create'): Promise<string> {
  const reply = await call(gpd, 'options', at, { ceremony });
  const { publicKey } = reply.json() as { publicKey: { challenge: string } };
  return publicKey.challenge;
}

/** Erases the visit as its browser. */
export const forget = (gpd: Gpd, { token, origin, session }: Visit): Promise<Reply> =>
  postJson(gpd.url, '/me', { token, action: 'forget' }, { origin, cookie: `gp_session=${session}` });
