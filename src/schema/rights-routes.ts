import { z } from 'zod';
import { PEOPLE_LANGUAGES } from '../lib/languages.ts';
import { kidSchema } from './bundle.ts';
import { emptyRequestSchema } from './consent.ts';
import { script } from './public-routes.ts';
import { outcomeRequestSchema, outcomeResponseSchema, requestIdSchema } from './responses.ts';
import * as rights from './rights.ts';
import { answer, BODY_ERRORS, type Route } from './route.ts';

/** The privacy-rights API (contract sections 3.5 and 6). */

export const publishableKeySchema = z.string().regex(/^gpd_pk_[\w-]{43}$/);

const PROTECTED = ['rate-limited', 'unauthenticated', 'unavailable', ...BODY_ERRORS] as const;

const OIDC_ROUTE = {
  method: 'post',
  tag: 'rights',
  credential: 'oidc',
  cors: 'api',
  limit: 'privacy',
} as const;

const BY_TOKEN = {
  method: 'post',
  tag: 'rights',
  credential: 'none',
  cors: 'api',
  limit: 'privacy',
} as const;

const PAGE = {
  ...BY_TOKEN,
  method: 'get',
  responses: { 200: { text: 'The page', type: 'text/html' } },
} as const;

const LANG = {
  text: 'The language of the page; without it `Accept-Language` says which.',
  schema: z.string().regex(new RegExp(`^(?:${PEOPLE_LANGUAGES.join('|')})$`)),
} as const;

const CASE = {
  ...BY_TOKEN,
  responses: answer(200, 'The case', rights.anyCaseSchema),
  errors: ['rate-limited', 'unavailable', ...BODY_ERRORS, 'no-such-case'],
} as const;

export const RIGHTS_ROUTES = {
  useTransparencyToken: {
    ...BY_TOKEN,
    path: '/me',
    summary:
      'What a browser may do with its transparency token: see, take with it, contest, or be forgotten.',
    request: rights.meRequestSchema,
    responses: {
      200: {
        text: 'view: a TransparencyView; forget: what was erased; export: as /privacy/dsar, of what the token reaches',
        schema: rights.tokenAnswerSchema,
        type: 'application/json',
      },
      202: {
        text: 'contest, complain (rights.profile uk): filed; a second one answers the first, without its key',
        schema: rights.filedSchema,
        type: 'application/json',
      },
    },
    errors: [...PROTECTED, 'no-retained-data', 'no-data', 'no-such-decision', 'too-many-cases'],
  },
  getMyDataPage: {
    ...PAGE,
    path: '/my-data',
    summary: 'A page for people: what this site’s device check holds about this browser.',
    optionalQuery: {
      kid: { text: 'The tenant; needless where one alone is at this host.', schema: kidSchema },
      key: {
        text: 'A publishable key: the page then offers to withdraw consent.',
        schema: publishableKeySchema,
      },
      lang: LANG,
    },
    limit: 'public',
    errors: ['missing-kid', 'unknown-kid', 'rate-limited'],
  },
  submitMyDataForm: {
    ...PAGE,
    method: 'post',
    path: '/my-data',
    summary:
      'The same as a form: token and action (view, page, export, forget, contest, complain), for browsers without JavaScript.',
    optionalQuery: { lang: LANG },
    errors: [
      'invalid-request',
      'unauthenticated',
      'no-data',
      'too-many-cases',
      'rate-limited',
      'unavailable',
    ],
  },
  getMyDataScript: script(
    '/v1/my-data.js',
    'The same for a page of the site’s own: fills <div data-gpd-my-data data-kid="KID">.',
  ),
  fileContest: {
    ...OIDC_ROUTE,
    path: '/privacy/contest',
    summary: 'File a contest against an automated decision about oneself (GDPR article 22(3)).',
    request: rights.contestRequestSchema,
    responses: answer(202, 'Filed; a second contest answers the first', rights.contestResponseSchema),
    errors: [...PROTECTED, 'subject-not-identified', 'subject-only', 'no-such-decision', 'not-your-decision'],
  },
  answerContest: {
    ...OIDC_ROUTE,
    path: '/privacy/contest/answer',
    summary: 'Answer the reviewer’s question about a contest that one filed.',
    request: rights.contestAnswerSchema,
    responses: answer(200, 'The record as it is now', rights.ownContestSchema),
    errors: [
      ...PROTECTED,
      'subject-not-identified',
      'subject-only',
      'no-such-contest',
      'not-your-decision',
      'case-closed',
    ],
  },
  getCasePage: {
    ...PAGE,
    path: '/case',
    summary: 'A page for people: one’s contest by its case key, which a link carries behind the #.',
    optionalQuery: { lang: LANG },
    errors: ['rate-limited'],
  },
  getCase: {
    ...CASE,
    path: '/case',
    summary: 'A contest that was filed without an account, by its case key.',
    request: rights.caseRequestSchema,
  },
  answerCase: {
    ...CASE,
    path: '/case/answer',
    summary: 'Answer the reviewer’s question, by the case key.',
    request: rights.caseAnswerSchema,
    errors: [...CASE.errors, 'case-closed'],
  },
  complainAboutCase: {
    ...CASE,
    path: '/case/complain',
    summary: 'Complain about how data are handled, by the case key (rights.profile uk).',
    request: rights.caseComplaintSchema,
    responses: answer(
      202,
      'Filed; a second complaint answers the first, without its key',
      rights.complaintFiledSchema,
    ),
    errors: [...CASE.errors, 'no-such-decision', 'too-many-cases'],
  },
  resolveContest: {
    ...OIDC_ROUTE,
    path: '/privacy/contest/resolve',
    summary: 'Resolve a contest as a reviewer or dpo of the tenant.',
    request: rights.resolveRequestSchema,
    responses: answer(200, 'The record as it is now', rights.contestResponseSchema),
    errors: [
      ...PROTECTED,
      'reviewer-only',
      'reviewer-tenant-unbound',
      'no-such-contest',
      'cross-tenant-denied',
      'self-review-denied',
      'already-resolved',
      'claimed-by-another',
      'stale-version',
    ],
  },
  exportOwnData: {
    ...OIDC_ROUTE,
    path: '/privacy/dsar',
    summary: 'Everything that is held about oneself, each decision explained (GDPR article 15).',
    request: emptyRequestSchema,
    responses: {
      200: {
        text: 'The decisions, the override, contests, consent and the notice',
        schema: rights.exportSchema,
        type: 'application/json',
      },
    },
    errors: [...PROTECTED, 'subject-not-identified', 'staff-export-elsewhere', 'no-data'],
  },
  eraseData: {
    ...OIDC_ROUTE,
    path: '/privacy/erase',
    summary: 'Erase what is held about oneself, or as a dpo about somebody of the tenant (GDPR article 17).',
    request: rights.eraseTargetSchema,
    responses: answer(200, 'The receipt, scope by scope', rights.erasureReceiptSchema),
    errors: [
      ...PROTECTED,
      'subject-not-identified',
      'not-your-data',
      'reviewer-tenant-unbound',
      'cross-tenant-denied',
    ],
  },
  reportOutcome: {
    method: 'post',
    tag: 'ingest',
    path: '/v1/decisions/{requestId}/outcome',
    summary: 'Report the outcome of a decision, once.',
    credential: ['secret'],
    cors: 'none',
    limit: 'consent',
    params: { requestId: { text: 'As the ingest answered it.', schema: requestIdSchema } },
    request: outcomeRequestSchema,
    responses: {
      200: { text: 'The same was reported before', schema: outcomeResponseSchema },
      201: { text: 'Recorded', schema: outcomeResponseSchema },
    },
    errors: [
      ...PROTECTED,
      'insufficient-scope',
      'secret-key-in-page',
      'no-such-decision',
      'idempotency-conflict',
    ],
  },
  linkPrincipal: {
    method: 'post',
    tag: 'consent',
    path: '/v1/principals/link',
    summary: 'Link the request behind a transparency token with the session’s principal.',
    credential: ['session'],
    cors: 'api',
    limit: 'consent',
    request: rights.linkRequestSchema,
    responses: answer(201, 'Linked', rights.linkResponseSchema),
    errors: [...PROTECTED, 'insufficient-scope', 'secret-key-in-page', 'claimed-by-another'],
  },
} as const satisfies Readonly<Record<string, Route>>;
