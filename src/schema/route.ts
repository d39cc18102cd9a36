import type { z } from 'zod';
import type { ErrorCode } from '../lib/errors.ts';

/** A row of the table of routes. */

/** Scopes of API keys (contract section 7). */
export const KEY_SCOPES = ['publishable', 'secret', 'read-only', 'operator'] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/**
 * `kid` is part of the sealed bundle; `oidc` is a bearer token; a list: API keys of these scopes, or a
 * principal's session.
 */
export type RouteCredential = 'none' | 'kid' | 'oidc' | readonly (KeyScope | 'session')[];

/**
 * `ingest` and `api` admit registered origins, with credentials; the rows of each share a preflight. `open`
 * admits every origin, because the answer does not depend on the caller.
 */
export type Cors = 'ingest' | 'api' | 'open' | 'none';

/** Refusals of a body before it is judged. */
export const BODY_ERRORS = [
  'invalid-json',
  'invalid-request',
  'payload-too-large',
  'unsupported-media-type',
] as const;

interface Parameter {
  readonly text: string;
  readonly schema: z.ZodType;
}
export type Parameters = Readonly<Record<string, Parameter>>;

export interface RouteAnswer {
  readonly text: string;
  readonly schema?: z.ZodType;
  /** Media type of a body that the handler sends itself; without it the answer is JSON by `schema`. */
  readonly type?: string;
}

/** The answer of a route with one status. */
export const answer = <const Status extends number, const Schema extends z.ZodType>(
  status: Status,
  text: string,
  schema: Schema,
) => ({ [status]: { text, schema } }) as Readonly<Record<Status, { text: string; schema: Schema }>>;

/** Groups of the reference. */
export const TAGS = {
  ingest: 'Sealed bundles, passkeys and verdicts.',
  consent: 'Checks, grants, purposes, policies and sessions.',
  ledger: 'The log of a tenant and its proofs.',
  agents: 'Signatures of agents, and what a site answers them.',
  rights: 'What a person may ask for.',
  browser: 'Scripts and words for pages.',
  service: 'Health, and this reference.',
} as const;
export type Tag = keyof typeof TAGS;

/** The rate limits; `LIMITS` says what each counts. */
export type LimitName =
  | 'ingest'
  | 'privacy'
  | 'public'
  | 'consent'
  | 'consent-by-client'
  | 'consent-withdrawal'
  | 'consent-state'
  | 'none';

export interface Route {
  readonly method: 'get' | 'post' | 'put';
  /** `{name}` is one segment; the name in `rest` takes all that follow. */
  readonly path: string;
  readonly rest?: string;
  readonly summary: string;
  readonly tag: Tag;
  readonly credential: RouteCredential;
  readonly cors: Cors;
  readonly limit: LimitName;
  /** Parameters of the path. A handler gets null for an invalid one. */
  readonly params?: Parameters;
  readonly query?: Parameters;
  readonly optionalQuery?: Parameters;
  /** Optional headers by their names in lower case, read after the body. An invalid one is 400. */
  readonly headers?: Parameters;
  readonly request?: z.ZodType;
  readonly responses: Readonly<Record<number, RouteAnswer>>;
  readonly errors: readonly ErrorCode[];
  /** Called so often that its answers carry only the headers a program needs, and none for pages. */
  readonly hot?: true;
  /** Catches every request that no earlier row matches. */
  readonly undocumented?: true;
}
