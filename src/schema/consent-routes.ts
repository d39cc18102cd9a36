import { z } from 'zod';
import { bannerResponseSchema, languageSchema, nonceSchema, themeSchema } from './banner.ts';
import * as consent from './consent.ts';
import { erasureReceiptSchema } from './rights.ts';
import { answer, BODY_ERRORS, type Route } from './route.ts';

/** The consent API (contract section 7). */

export const PROTECTED = [
  'unauthenticated',
  'insufficient-scope',
  'secret-key-in-page',
  'rate-limited',
] as const;
const WITH_BODY = [...PROTECTED, ...BODY_ERRORS] as const;

const READERS = ['secret', 'read-only', 'operator'] as const;
const OWN_READERS = [...READERS, 'session'] as const;
const ANY_KEY = ['publishable', ...READERS] as const;
export const ANYBODY = [...ANY_KEY, 'session'] as const;

const WRITE = {
  method: 'post',
  tag: 'consent',
  credential: ['secret', 'operator', 'session', 'publishable'],
  cors: 'api',
  limit: 'consent-by-client',
  headers: {
    'idempotency-key': {
      text: 'For 24 hours the same key with the same body is answered as before, with the present `state`. It belongs to the secret key, or to the principal of the session or browser.',
      schema: consent.idempotencyKeySchema,
    },
  },
  request: consent.consentWriteSchema,
  responses: answer(201, 'One entry of the log a purpose', consent.writeResponseSchema),
  errors: [
    ...WITH_BODY,
    'origin-not-allowed',
    'not-your-principal',
    'unknown-purpose',
    'idempotency-conflict',
    'erased',
    'unavailable',
  ],
} as const;

const READ = {
  method: 'get',
  tag: 'consent',
  credential: ANY_KEY,
  cors: 'api',
  limit: 'consent',
  errors: PROTECTED,
} as const;
const POST = { method: 'post', tag: 'consent', cors: 'api', limit: 'consent', errors: WITH_BODY } as const;

/** The number of an entry. */
export const SEQ = {
  text: 'Number of the entry in the log.',
  schema: z
    .string()
    .regex(/^(?:0|[1-9]\d{0,14})$/)
    .transform(Number),
} as const;

export const CONSENT_ROUTES = {
  checkConsent: {
    ...POST,
    path: '/v1/consent/can-process',
    summary: 'May this processing happen? A denial is a 200.',
    credential: READERS,
    hot: true,
    request: consent.canProcessRequestSchema,
    responses: answer(200, 'The decision, why, and with what proof', consent.decisionSchema),
    errors: [...WITH_BODY, 'unavailable'],
  },
  checkConsentBatch: {
    ...POST,
    path: '/v1/consent/can-process/batch',
    summary: 'Up to 100 decisions of one snapshot.',
    credential: READERS,
    request: consent.batchRequestSchema,
    responses: answer(200, 'The decisions by id', consent.batchResponseSchema),
  },
  grantConsent: {
    ...WRITE,
    path: '/v1/consent/grant',
    summary: 'Record a grant.',
    request: consent.consentGrantSchema,
  },
  denyConsent: { ...WRITE, path: '/v1/consent/deny', summary: 'Record a denial.' },
  withdrawConsent: {
    ...WRITE,
    path: '/v1/consent/withdraw',
    limit: 'consent-withdrawal',
    summary: 'Record a withdrawal; the very next check is denied.',
  },
  getConsentState: {
    ...POST,
    path: '/v1/consent/state',
    summary: 'What a principal said last, purpose by purpose.',
    credential: [...OWN_READERS, 'publishable'],
    limit: 'consent-state',
    request: consent.stateRequestSchema,
    responses: answer(200, 'The state', consent.stateResponseSchema),
    errors: [...WITH_BODY, 'origin-not-allowed', 'not-your-principal'],
  },
  refreshState: {
    ...POST,
    path: '/v1/consent/state/refresh',
    summary: 'The present state of the person whom a signed state of any age is about.',
    credential: READERS,
    request: consent.refreshRequestSchema,
    responses: answer(200, 'The present state', consent.refreshedStateSchema),
    errors: [...WITH_BODY, 'no-data', 'unavailable'],
  },
  getStateKeys: {
    method: 'get',
    tag: 'consent',
    path: '/v1/consent/state-keys',
    summary: 'The key that verifies signed states. With a credential the answer names its tenant.',
    credential: 'none',
    cors: 'api',
    limit: 'public',
    responses: answer(200, 'A JWK set', consent.stateKeysSchema),
    errors: ['unauthenticated', 'secret-key-in-page', 'rate-limited'],
  },
  listConsentReceipts: {
    ...POST,
    path: '/v1/consent/receipts',
    summary: 'The receipts of a principal as JSON-LD, or as a page to print where `Accept` names HTML.',
    credential: [...OWN_READERS, 'publishable'],
    limit: 'consent-state',
    request: consent.stateRequestSchema,
    responses: {
      200: { text: 'ISO/IEC TS 27560 in the terms of DPV, newest first', type: 'application/ld+json' },
    },
    errors: [...WITH_BODY, 'origin-not-allowed', 'not-your-principal'],
  },
  listConsentHistory: {
    ...POST,
    path: '/v1/consent/history',
    summary: 'What a principal said, newest first.',
    credential: OWN_READERS,
    request: consent.historyRequestSchema,
    responses: answer(200, 'A page of events', consent.historyResponseSchema),
    errors: [...WITH_BODY, 'not-your-principal'],
  },
  listPurposes: {
    ...READ,
    path: '/v1/consent/purposes',
    summary: 'The purposes of the tenant.',
    responses: answer(200, 'The purposes of the tenant.', consent.purposesResponseSchema),
  },
  savePurposes: {
    ...POST,
    method: 'put',
    path: '/v1/consent/purposes',
    summary: 'Define or change purposes.',
    credential: ['operator'],
    request: consent.purposesRequestSchema,
    responses: answer(200, 'All purposes, and the entries that say so', consent.savedPurposesSchema),
  },
  listPolicies: {
    ...READ,
    path: '/v1/consent/policies',
    summary: 'The policy versions of the tenant.',
    responses: answer(200, 'The policy versions of the tenant.', consent.policiesResponseSchema),
  },
  publishPolicy: {
    ...POST,
    path: '/v1/consent/policies',
    summary: 'Publish the next policy version.',
    credential: ['operator'],
    request: consent.policyRequestSchema,
    responses: answer(201, 'The version with the SHA-256 of its text', consent.publishedPolicySchema),
  },
  getBanner: {
    ...READ,
    path: '/v1/consent/banner',
    limit: 'consent-by-client',
    summary: 'What the consent banner shows. The log knows of it before it is shown.',
    optionalQuery: {
      lang: { text: 'Primary subtag of the language; default `en`.', schema: languageSchema },
    },
    responses: answer(200, 'Policy version, purposes and texts', bannerResponseSchema),
    errors: [...PROTECTED, 'invalid-request', 'unavailable'],
  },
  getBannerMarkup: {
    ...READ,
    path: '/v1/consent/banner.html',
    limit: 'consent-by-client',
    summary:
      'The banner as markup, which the page’s server writes into its pages. The log knows of it before.',
    optionalQuery: {
      lang: { text: 'Primary subtag of the language; default `en`.', schema: languageSchema },
      theme: { text: 'The value of the snippet’s `data-theme`.', schema: themeSchema },
      nonce: { text: 'The nonce of the page’s policy for its styles.', schema: nonceSchema },
    },
    responses: {
      200: { text: 'The element gpd-consent, for a visitor who was never asked', type: 'text/html' },
    },
    errors: [...PROTECTED, 'invalid-request', 'unavailable'],
  },
  getConsentReceipt: {
    ...READ,
    path: '/v1/consent/receipts/{seq}',
    summary: 'A signed copy of one entry for the person it is about.',
    credential: ['secret', 'session'],
    params: { seq: SEQ },
    responses: answer(
      200,
      'A signed copy of one entry for the person it is about.',
      consent.issuedReceiptSchema,
    ),
    errors: [...PROTECTED, 'not-found', 'not-your-principal'],
  },
  openSession: {
    ...POST,
    path: '/v1/sessions',
    summary: 'Open a session for one principal, for at most 15 minutes.',
    credential: ['secret'],
    request: consent.principalRequestSchema,
    responses: answer(201, 'The session’s token', consent.sessionResponseSchema),
  },
  joinPrincipal: {
    ...POST,
    path: '/v1/principals/join',
    summary: 'Join this browser with the account of the session: from then on each answers for both.',
    credential: ['session'],
    request: consent.joinRequestSchema,
    responses: {
      ...answer(201, 'They are joined', consent.joinResponseSchema),
      ...answer(200, 'They were joined before', consent.joinResponseSchema),
    },
    errors: [...WITH_BODY, 'claimed-by-another', 'unavailable'],
  },
  erasePrincipal: {
    ...POST,
    path: '/v1/principals/erase',
    summary: 'Erase one’s own consent record; the log keeps entries that can no longer be opened.',
    credential: ['session'],
    request: consent.emptyRequestSchema,
    responses: answer(200, 'The receipt', erasureReceiptSchema),
  },
} as const satisfies Readonly<Record<string, Route>>;
