import { z } from 'zod';
import type { ErrorCode } from '../lib/errors.ts';
import { embedManifestSchema } from './banner.ts';
import { sealedBundleSchema } from './bundle.ts';
import {
  decisionResponseSchema,
  errorBodySchema,
  healthSchema,
  ingestResponseSchema,
  pubKeyResponseSchema,
  readySchema,
} from './responses.ts';

/** The table of routes. The OpenAPI document and the 405 answers are made from it. */
export interface Route {
  readonly method: 'get' | 'post' | 'put';
  readonly path: string;
  readonly summary: string;
  readonly credential: 'none' | 'kid' | 'api-key' | 'oidc';
  readonly query?: Readonly<Record<string, string>>;
  readonly optionalQuery?: Readonly<Record<string, string>>;
  readonly request?: z.ZodType;
  readonly responses: Readonly<
    Record<number, { readonly text: string; readonly schema?: z.ZodType; readonly type?: string }>
  >;
  readonly errors: readonly ErrorCode[];
}

const script = { text: 'JavaScript', type: 'text/javascript' };

export const INGEST_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/_fp/i/v1',
    summary: 'Ingest one sealed bundle; the verdict is durable before the answer leaves.',
    credential: 'kid',
    request: sealedBundleSchema,
    responses: {
      200: { text: 'ok: classified, and identified when the signals allow it', schema: ingestResponseSchema },
      400: {
        text: 'stale or decrypt-failed; malformed-sealed-bundle has the error shape',
        schema: z.union([ingestResponseSchema, errorBodySchema]),
      },
      401: { text: 'unknown-key (symmetric form only)', schema: ingestResponseSchema },
      409: { text: 'replay: the nonce was claimed before', schema: ingestResponseSchema },
      451: { text: 'consent-missing: nothing was written', schema: ingestResponseSchema },
      500: { text: 'unknown: a fault inside the core', schema: ingestResponseSchema },
    },
    errors: ['request-timeout', 'payload-too-large', 'unsupported-media-type', 'rate-limited', 'unavailable'],
  },
  {
    method: 'get',
    path: '/_fp/pubkey',
    summary: 'The published seal key of a tenant.',
    credential: 'none',
    query: { kid: 'The tenant.' },
    responses: { 200: { text: 'The key', schema: pubKeyResponseSchema } },
    errors: ['missing-kid', 'unknown-kid'],
  },
  {
    method: 'get',
    path: '/v1/decisions/{requestId}',
    summary: 'The verdict for the tenant’s backend: a browser must not be the messenger of its own verdict.',
    credential: 'api-key',
    responses: { 200: { text: 'The verdict with the rules that fired', schema: decisionResponseSchema } },
    errors: ['unauthenticated', 'insufficient-scope', 'no-such-decision', 'rate-limited'],
  },
  {
    method: 'get',
    path: '/v1/agent.js',
    summary: 'The browser agent as an ES module.',
    credential: 'none',
    responses: { 200: script },
    errors: [],
  },
  {
    method: 'get',
    path: '/v1/agent.classic.js',
    summary: 'The browser agent as a classic script.',
    credential: 'none',
    responses: { 200: script },
    errors: [],
  },
  {
    method: 'get',
    path: '/v1/agent-worker.js',
    summary: 'The agent’s worker, to be served from the page’s own origin.',
    credential: 'none',
    responses: { 200: script },
    errors: [],
  },
  {
    method: 'get',
    path: '/v1/embed.js',
    summary: 'The consent banner, as it is now.',
    credential: 'none',
    responses: { 200: script },
    errors: [],
  },
  {
    method: 'get',
    path: '/v1/embed/{version}/embed.js',
    summary: 'The consent banner at an address whose bytes never change, for a page that pins them.',
    credential: 'none',
    responses: { 200: script },
    errors: ['not-found'],
  },
  {
    method: 'get',
    path: '/v1/embed/{version}/{language}.json',
    summary: 'The banner’s words in one language.',
    credential: 'none',
    responses: { 200: { text: 'The words', type: 'application/json' } },
    errors: ['not-found'],
  },
  {
    method: 'get',
    path: '/v1/embed.json',
    summary: 'The pinned address of the banner with its integrity hash.',
    credential: 'none',
    responses: { 200: { text: 'Address, hash and languages', schema: embedManifestSchema } },
    errors: [],
  },
  {
    method: 'get',
    path: '/v1/embed.d.ts',
    summary: 'TypeScript types of the banner’s page API.',
    credential: 'none',
    responses: { 200: { text: 'TypeScript declarations', type: 'text/plain' } },
    errors: [],
  },
  {
    method: 'get',
    path: '/healthz',
    summary: 'Liveness, with no work behind it.',
    credential: 'none',
    responses: { 200: { text: 'Alive', schema: healthSchema } },
    errors: [],
  },
  {
    method: 'get',
    path: '/readyz',
    summary: 'Readiness: what is not ready.',
    credential: 'none',
    responses: {
      200: { text: 'Ready', schema: readySchema },
      503: { text: 'Not ready', schema: readySchema },
    },
    errors: [],
  },
  {
    method: 'get',
    path: '/openapi.json',
    summary: 'This document.',
    credential: 'none',
    responses: { 200: { text: 'OpenAPI 3.1', type: 'application/json' } },
    errors: [],
  },
];
