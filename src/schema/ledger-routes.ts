import { z } from 'zod';
import { kidSchema, principalIdSchema } from './bundle.ts';
import { PROTECTED, SEQ } from './consent-routes.ts';
import { requestIdSchema } from './responses.ts';
import type { Route } from './route.ts';

/**
 * A tenant's log (contract section 7): for its own keys, and open to everyone where `ledger.public` is on.
 */

const LEVEL = {
  text: 'Level of the tree, 0 for the leaf hashes, or `entries` for the entries themselves.',
  schema: z.string().regex(/^(?:entries|0|[1-9]\d?)$/),
};
const INDEX = {
  text: 'Which tile, in groups of three digits, `.p/WIDTH` behind a partial one: `x001/067` or `000.p/5`.',
  schema: z.string().regex(/^(?:x\d{3}\/){0,5}\d{3}(?:\.p\/[1-9]\d{0,2})?$/),
};
const TIME = { schema: z.string().regex(/^\d{4}-\d{2}-\d{2}(?:T.+)?$/) };
const KID = { text: 'The tenant.', schema: kidSchema };

const CHECKPOINT = { text: 'The signed head of the log.', type: 'text/plain' } as const;
const VKEY = { text: 'The key that checkpoints are verified with.', type: 'text/plain' } as const;
const EXPORT = { text: 'All entries as NDJSON.', type: 'application/x-ndjson' } as const;
const TILE = { text: 'The bytes as C2SP tlog-tiles.', type: 'application/octet-stream' } as const;
const NOTHING = { text: 'Never.', type: 'text/plain' } as const;

const TENANT_ROUTE = {
  method: 'get',
  tag: 'ledger',
  credential: ['read-only', 'secret', 'operator'],
  cors: 'none',
  limit: 'consent',
  errors: PROTECTED,
} as const;
const OPEN = {
  method: 'get',
  tag: 'ledger',
  credential: 'none',
  cors: 'open',
  limit: 'public',
  errors: ['not-found', 'rate-limited'],
} as const;

export const LEDGER_ROUTES = {
  getConsentProof: {
    ...TENANT_ROUTE,
    path: '/v1/consent/proofs/{seq}',
    summary: 'c2sp.org/tlog-proof@v1 with the entry inside, verifiable offline.',
    cors: 'api',
    params: { seq: SEQ },
    responses: {
      200: { text: 'c2sp.org/tlog-proof@v1 with the entry inside, verifiable offline.', type: 'text/plain' },
    },
    errors: [...PROTECTED, 'not-found'],
  },
  getCheckpoint: {
    ...TENANT_ROUTE,
    path: '/v1/ledger/checkpoint',
    summary: CHECKPOINT.text,
    responses: { 200: CHECKPOINT },
  },
  getVerifierKey: { ...TENANT_ROUTE, path: '/v1/ledger/vkey', summary: VKEY.text, responses: { 200: VKEY } },
  exportLog: { ...TENANT_ROUTE, path: '/v1/ledger/export', summary: EXPORT.text, responses: { 200: EXPORT } },
  getTile: {
    ...TENANT_ROUTE,
    path: '/v1/ledger/tile/{level}/{index}',
    rest: 'index',
    summary: 'One tile of the log.',
    params: { level: LEVEL, index: INDEX },
    responses: { 200: TILE },
    errors: [...PROTECTED, 'not-found'],
  },
  getEvidence: {
    ...TENANT_ROUTE,
    path: '/v1/evidence',
    summary: 'A file of evidence: what people chose in a period, with all its proofs, sealed.',
    credential: ['operator'],
    query: {
      from: { ...TIME, text: 'The start of the period, UTC.' },
      to: { ...TIME, text: 'Its end, exclusive.' },
    },
    optionalQuery: {
      principal: { text: 'Only this person.', schema: principalIdSchema },
      request: { text: 'Only the person behind this requestId.', schema: requestIdSchema },
    },
    responses: { 200: { text: 'README.html in it explains the parts.', type: 'application/zip' } },
    errors: [...PROTECTED, 'invalid-request', 'not-found', 'unavailable'],
  },
  getLogRest: {
    ...TENANT_ROUTE,
    path: '/v1/ledger/{part}',
    rest: 'part',
    undocumented: true,
    summary: 'Nothing, and 401 before that.',
    responses: { 200: NOTHING },
  },
  getPublicCheckpoint: {
    ...OPEN,
    path: '/ledger/{kid}/checkpoint',
    summary: 'The signed head of an open log.',
    params: { kid: KID },
    responses: { 200: CHECKPOINT },
  },
  getPublicVerifierKey: {
    ...OPEN,
    path: '/ledger/{kid}/vkey',
    summary: 'The key that checkpoints of an open log are verified with.',
    params: { kid: KID },
    responses: { 200: VKEY },
  },
  exportPublicLog: {
    ...OPEN,
    path: '/ledger/{kid}/export',
    summary: 'All entries of an open log as NDJSON, once at a time for a client; auditors read tiles.',
    params: { kid: KID },
    responses: { 200: EXPORT },
  },
  getPublicTile: {
    ...OPEN,
    path: '/ledger/{kid}/tile/{level}/{index}',
    rest: 'index',
    summary: 'One tile of an open log.',
    params: { kid: KID, level: LEVEL, index: INDEX },
    responses: { 200: TILE },
  },
  getPublicLogRest: {
    ...OPEN,
    path: '/ledger/{kid}/{part}',
    rest: 'part',
    undocumented: true,
    summary: 'Nothing.',
    responses: { 200: NOTHING },
  },
} as const satisfies Readonly<Record<string, Route>>;
