import { z } from 'zod';
import { bannerResponseSchema } from './banner.ts';
import {
  batchRequestSchema,
  batchResponseSchema,
  canProcessRequestSchema,
  consentWriteSchema,
  decisionSchema,
  emptyRequestSchema,
  historyRequestSchema,
  policyRequestSchema,
  principalRequestSchema,
  purposesRequestSchema,
  sessionResponseSchema,
  writeResponseSchema,
} from './consent.ts';
import type { Route } from './public-routes.ts';

/** The consent API (contract section 7). */

const PROTECTED = ['unauthenticated', 'insufficient-scope', 'rate-limited'] as const;
const WITH_BODY = [
  ...PROTECTED,
  'invalid-json',
  'invalid-request',
  'payload-too-large',
  'unsupported-media-type',
] as const;
const WRITE = [
  ...WITH_BODY,
  'origin-not-allowed',
  'not-your-principal',
  'unknown-purpose',
  'idempotency-conflict',
  'unavailable',
] as const;

const open = z.looseObject({});

const write = (action: string, summary: string): Route => ({
  method: 'post',
  path: `/v1/consent/${action}`,
  summary,
  credential: 'api-key',
  request: consentWriteSchema,
  responses: { 201: { text: 'One entry of the log a purpose', schema: writeResponseSchema } },
  errors: WRITE,
});

const read = (path: string, summary: string, type: string, errors: Route['errors'] = PROTECTED): Route => ({
  method: 'get',
  path,
  summary,
  credential: 'api-key',
  responses: { 200: { text: summary, type } },
  errors,
});

const json = 'application/json';

export const CONSENT_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/consent/can-process',
    summary: 'May this processing happen? A denial is a 200.',
    credential: 'api-key',
    request: canProcessRequestSchema,
    responses: { 200: { text: 'The decision, why, and with what proof', schema: decisionSchema } },
    errors: [...WITH_BODY, 'unavailable'],
  },
  {
    method: 'post',
    path: '/v1/consent/can-process/batch',
    summary: 'Up to 100 decisions of one snapshot.',
    credential: 'api-key',
    request: batchRequestSchema,
    responses: { 200: { text: 'The decisions by id', schema: batchResponseSchema } },
    errors: WITH_BODY,
  },
  write('grant', 'Record a grant.'),
  write('deny', 'Record a denial.'),
  write('withdraw', 'Record a withdrawal; the very next check is denied.'),
  {
    method: 'post',
    path: '/v1/consent/state',
    summary: 'What a principal said last, purpose by purpose.',
    credential: 'api-key',
    request: principalRequestSchema,
    responses: { 200: { text: 'The state', schema: open } },
    errors: [...WITH_BODY, 'not-your-principal'],
  },
  {
    method: 'post',
    path: '/v1/consent/history',
    summary: 'What a principal said, newest first.',
    credential: 'api-key',
    request: historyRequestSchema,
    responses: { 200: { text: 'A page of events', schema: open } },
    errors: [...WITH_BODY, 'not-your-principal'],
  },
  read('/v1/consent/purposes', 'The purposes of the tenant.', json),
  {
    method: 'put',
    path: '/v1/consent/purposes',
    summary: 'Define or change purposes.',
    credential: 'api-key',
    request: purposesRequestSchema,
    responses: { 200: { text: 'All purposes, and the entries that say so', schema: open } },
    errors: WITH_BODY,
  },
  read('/v1/consent/policies', 'The policy versions of the tenant.', json),
  {
    method: 'post',
    path: '/v1/consent/policies',
    summary: 'Publish the next policy version.',
    credential: 'api-key',
    request: policyRequestSchema,
    responses: { 201: { text: 'The version with the SHA-256 of its text', schema: open } },
    errors: WITH_BODY,
  },
  {
    method: 'get',
    path: '/v1/consent/banner',
    summary: 'What the consent banner shows. The log knows of it before it is shown.',
    credential: 'api-key',
    optionalQuery: { lang: 'Primary subtag of the language; default `en`.' },
    responses: { 200: { text: 'Policy version, purposes and texts', schema: bannerResponseSchema } },
    errors: [...PROTECTED, 'invalid-request', 'unavailable'],
  },
  read('/v1/consent/receipts/{seq}', 'A signed copy of one entry for the person it is about.', json, [
    ...PROTECTED,
    'not-found',
    'not-your-principal',
  ]),
  read(
    '/v1/consent/proofs/{seq}',
    'c2sp.org/tlog-proof@v1 with the entry inside, verifiable offline.',
    'text/plain',
    [...PROTECTED, 'not-found'],
  ),
  read('/v1/ledger/checkpoint', 'The signed head of the log.', 'text/plain'),
  read('/v1/ledger/vkey', 'The key that checkpoints are verified with.', 'text/plain'),
  read('/v1/ledger/export', 'All entries as NDJSON.', 'application/x-ndjson'),
  {
    method: 'post',
    path: '/v1/sessions',
    summary: 'Open a session for one principal, for at most 15 minutes.',
    credential: 'api-key',
    request: principalRequestSchema,
    responses: { 201: { text: 'The session’s token', schema: sessionResponseSchema } },
    errors: WITH_BODY,
  },
  {
    method: 'post',
    path: '/v1/principals/erase',
    summary: 'Erase one’s own consent record; the log keeps entries that open no more.',
    credential: 'api-key',
    request: emptyRequestSchema,
    responses: { 200: { text: 'The receipt', schema: open } },
    errors: WITH_BODY,
  },
];
