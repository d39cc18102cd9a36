import { z } from 'zod';
import { embedManifestSchema } from './banner.ts';
import { kidSchema, sealedBundleSchema } from './bundle.ts';
import { gpcSupportSchema } from './gpc.ts';
import * as answers from './responses.ts';
import { answer, BODY_ERRORS, type Route } from './route.ts';

/** The ingest, verdicts, the browser's files, health and the reference. */

const SCRIPT = { text: 'JavaScript', type: 'text/javascript' };
const VERSION = { text: 'As /v1/embed.json names it.', schema: z.string() };

/** Equal for everyone, open to every origin. */
const OPEN = {
  method: 'get',
  tag: 'browser',
  credential: 'none',
  cors: 'open',
  limit: 'public',
  errors: ['rate-limited'],
} as const;

/** Routes for this machine and its operator. */
const SERVICE_ROUTE = { ...OPEN, tag: 'service', cors: 'none' } as const;

const ATTEST = {
  method: 'post',
  tag: 'ingest',
  credential: 'none',
  cors: 'ingest',
  limit: 'privacy',
  errors: [
    'attestation-failed',
    'unauthenticated',
    'no-retained-data',
    'rate-limited',
    'consent-missing',
    'unavailable',
    ...BODY_ERRORS,
  ],
} as const;

export const script = <const Path extends string>(path: Path, summary: string) =>
  ({ ...OPEN, path, summary, responses: { 200: SCRIPT } }) as const;

export const PUBLIC_ROUTES = {
  ingest: {
    method: 'post',
    tag: 'ingest',
    path: '/_fp/i/v1',
    summary: 'Ingest one sealed bundle; the verdict is durable before the answer leaves.',
    credential: 'kid',
    cors: 'ingest',
    limit: 'ingest',
    hot: true,
    request: sealedBundleSchema,
    responses: {
      200: {
        text: 'ok: classified, and identified when the signals allow it',
        schema: answers.ingestResponseSchema,
      },
      400: {
        text: 'stale or decrypt-failed; malformed-sealed-bundle has the error shape',
        schema: answers.ingestRefusalSchema,
      },
      401: { text: 'unknown-key (symmetric form only)', schema: answers.ingestResponseSchema },
      409: { text: 'replay: the nonce was claimed before', schema: answers.ingestResponseSchema },
      451: { text: 'consent-missing: nothing was written', schema: answers.ingestResponseSchema },
      500: { text: 'unknown: a fault inside the core', schema: answers.ingestResponseSchema },
    },
    errors: ['request-timeout', 'payload-too-large', 'unsupported-media-type', 'rate-limited', 'unavailable'],
  },
  startAttestation: {
    ...ATTEST,
    path: '/_fp/attest/v1/options',
    summary: 'What to ask a passkey of, for a request that needs attestation; by its transparency token.',
    request: answers.attestOptionsRequestSchema,
    responses: answer(200, 'Options of WebAuthn with a challenge', answers.attestOptionsSchema),
  },
  finishAttestation: {
    ...ATTEST,
    path: '/_fp/attest/v1/verify',
    summary: 'Takes the passkey’s answer: a new decision for the attested device.',
    request: answers.attestVerifyRequestSchema,
    responses: answer(200, 'The new decision', answers.ingestResponseSchema),
  },
  getSealKey: {
    ...OPEN,
    tag: 'ingest',
    path: '/_fp/pubkey',
    summary: 'The published seal key of a tenant.',
    query: { kid: { text: 'The tenant.', schema: kidSchema } },
    responses: answer(200, 'The key', answers.pubKeyResponseSchema),
    errors: ['missing-kid', 'unknown-kid', 'rate-limited'],
  },
  getDecision: {
    ...SERVICE_ROUTE,
    limit: 'consent',
    tag: 'ingest',
    path: '/v1/decisions/{requestId}',
    summary: 'The verdict for the tenant’s backend: a browser must not deliver its own verdict.',
    credential: ['secret', 'read-only', 'operator'],
    params: { requestId: { text: 'As the ingest answered it.', schema: answers.requestIdSchema } },
    responses: answer(200, 'The verdict with the rules that fired', answers.heldDecisionSchema),
    errors: [
      'unauthenticated',
      'insufficient-scope',
      'secret-key-in-page',
      'no-such-decision',
      'rate-limited',
    ],
  },
  askQuestion: {
    ...SERVICE_ROUTE,
    method: 'post',
    limit: 'consent',
    path: '/v1/mcp',
    summary: 'Read-only questions of a coding agent, by the Model Context Protocol (Streamable HTTP).',
    credential: ['operator'],
    request: answers.mcpMessageSchema,
    responses: {
      200: { text: 'A message of JSON-RPC, as JSON or as one event', schema: answers.mcpAnswerSchema },
      202: { text: 'A notification was taken; without a body', type: 'text/plain' },
    },
    errors: ['unauthenticated', 'insufficient-scope', 'secret-key-in-page', 'rate-limited', ...BODY_ERRORS],
  },
  getAgentScript: script('/v1/agent.js', 'The browser agent as an ES module.'),
  getAgentTypes: {
    ...OPEN,
    path: '/v1/agent.d.ts',
    summary: 'TypeScript types of the agent.',
    responses: { 200: { text: 'TypeScript declarations', type: 'text/plain' } },
  },
  getClassicAgentScript: script('/v1/agent.classic.js', 'The browser agent as a classic script.'),
  getAgentWorkerScript: script(
    '/v1/agent-worker.js',
    'The agent’s worker, to be served from the page’s own origin.',
  ),
  getPasskeyScript: script(
    '/v1/agent-passkey.js',
    'The half of the agent that asks for a passkey, loaded when a page wants one.',
  ),
  getBannerScript: script('/v1/embed.js', 'The consent banner, as it is now.'),
  getPinnedBannerScript: {
    ...OPEN,
    path: '/v1/embed/{version}/embed.js',
    summary: 'The consent banner at an address whose bytes never change, for a page that pins them.',
    params: { version: VERSION },
    responses: { 200: SCRIPT },
    errors: ['not-found', 'rate-limited'],
  },
  getBannerExtras: {
    ...OPEN,
    path: '/v1/embed/{version}/extras.js',
    summary: 'The part of the banner that its script fetches when a page needs it, such as the settings.',
    params: { version: VERSION },
    responses: { 200: SCRIPT },
    errors: ['not-found', 'rate-limited'],
  },
  getBannerManifest: {
    ...OPEN,
    path: '/v1/embed.json',
    summary: 'The pinned address of the banner with its integrity hash.',
    responses: answer(200, 'Address, hash and languages', embedManifestSchema),
  },
  getBannerTypes: {
    ...OPEN,
    path: '/v1/embed.d.ts',
    summary: 'TypeScript types of the banner’s page API.',
    responses: { 200: { text: 'TypeScript declarations', type: 'text/plain' } },
  },
  getGpcSupport: {
    ...OPEN,
    path: '/.well-known/gpc.json',
    summary: 'This site honours Global Privacy Control.',
    responses: answer(200, 'That it does, and since when it does so', gpcSupportSchema),
  },
  getRoot: {
    ...SERVICE_ROUTE,
    path: '/',
    summary: 'What this server is, and where its public pages are.',
    responses: {
      200: {
        text: 'Name and addresses; for a browser as a page',
        schema: answers.rootSchema,
        type: 'application/json',
      },
    },
  },
  getHealth: {
    ...SERVICE_ROUTE,
    limit: 'none',
    errors: [],
    path: '/healthz',
    summary: 'Liveness, with no work behind it.',
    responses: answer(200, 'Alive', answers.healthSchema),
  },
  getReadiness: {
    ...SERVICE_ROUTE,
    limit: 'none',
    errors: [],
    path: '/readyz',
    summary: 'Readiness: what is not ready, and what works only slower.',
    responses: {
      200: { text: 'Ready', schema: answers.readySchema },
      503: { text: 'Not ready', schema: answers.readySchema },
    },
  },
  getOpenApi: {
    ...OPEN,
    tag: 'service',
    path: '/openapi.json',
    summary: 'This document.',
    responses: { 200: { text: 'OpenAPI 3.1', type: 'application/json' } },
  },
  getReference: {
    ...SERVICE_ROUTE,
    path: '/docs',
    summary: 'This document as a page.',
    responses: { 200: { text: 'The page', type: 'text/html' } },
  },
} as const satisfies Readonly<Record<string, Route>>;
