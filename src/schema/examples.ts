import type { RouteName } from './routes.ts';

/** One example of each body, and of answers that integrators read first. A test parses them by schema. */

const REQUEST_ID = 'req_01JD9ZV4M8Q2W3E4R5T6Y7A8B9';
const CONTEST_ID = 'con_01JD9ZV4M8Q2W3E4R5T6Y7A8B9';
const HASH = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const TIME = '2026-11-23T03:00:00.000Z';
const SECRET = 'qL8R4QIcQ_ZsRqOAbeRfcZhilN_MksRtDaErMA5sDl0';
const ENTRY = { seq: 42, hash: HASH };
const DECISION = {
  allowed: true,
  reason: 'granted',
  proof: ENTRY,
  policyVersion: 3,
  expiresAt: null,
  given: 'person',
};
const WRITE = { principalId: 'u-1', purposes: ['newsletter'] };

export const BODY_EXAMPLES: Readonly<Partial<Record<RouteName, unknown>>> = {
  ingest: { kid: 'shop', iv: 'MDEyMzQ1Njc4OUFC', ct: 'c2VhbGVkIGJ5IHRoZSBhZ2VudA==' },
  startAttestation: { token: 'TOKEN', ceremony: 'create' },
  finishAttestation: { token: 'TOKEN', credential: {} },
  checkConsent: { principalId: 'u-1', purpose: 'newsletter' },
  checkConsentBatch: { checks: [{ id: '0', principalId: 'u-1', purpose: 'newsletter' }] },
  grantConsent: WRITE,
  denyConsent: WRITE,
  withdrawConsent: WRITE,
  getConsentState: { principalId: 'u-1' },
  refreshState: { state: 'HEADER.CLAIMS.SIGNATURE' },
  listConsentReceipts: { principalId: 'u-1' },
  listConsentHistory: { principalId: 'u-1', limit: 50 },
  savePurposes: { purposes: [{ id: 'newsletter', title: 'Newsletter' }] },
  publishPolicy: { text: 'We send a newsletter once a month.', material: true },
  openSession: { principalId: 'u-1' },
  joinPrincipal: { principalId: 'b-7f3c', principalSecret: SECRET },
  erasePrincipal: {},
  linkPrincipal: { token: 'TOKEN' },
  reportOutcome: { outcome: 'chargeback', at: TIME },
  useTransparencyToken: { token: 'TOKEN', action: 'view' },
  fileContest: { requestId: REQUEST_ID, statement: 'I am a person.' },
  answerContest: { contestId: CONTEST_ID, answer: 'I used a screen reader.' },
  getCase: { caseKey: 'CASE-KEY' },
  answerCase: { caseKey: 'CASE-KEY', answer: 'I used a screen reader.' },
  complainAboutCase: { caseKey: 'CASE-KEY', statement: 'Nobody answered me in time.' },
  askQuestion: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
  verifyAgent: {
    method: 'GET',
    url: 'https://shop.example/products',
    headers: { 'user-agent': 'ExampleBot/1.0' },
  },
  reviewAgent: { case: REQUEST_ID, statement: 'Our agent was taken for another one.' },
  resolveContest: { contestId: CONTEST_ID, outcome: 'overturned', reason: 'The visit was that of a person.' },
  exportOwnData: {},
  eraseData: { visitorId: 'v-1' },
};

export const ANSWER_EXAMPLES: Readonly<Partial<Record<RouteName, unknown>>> = {
  checkConsent: DECISION,
  checkConsentBatch: { results: [{ id: '0', ...DECISION }] },
  grantConsent: { entries: [{ purpose: 'newsletter', ...ENTRY }], ...ENTRY },
  listPurposes: {
    purposes: [
      {
        id: 'newsletter',
        title: 'Newsletter',
        description: '',
        lawfulBasis: 'consent',
        gpc: 'opt-out',
        ttlDays: 180,
        banner: true,
      },
    ],
  },
  openSession: { token: 'gpd_ps_…', principalId: 'u-1', subject: 'ijy9EDjz0trW', expiresAt: TIME },
  getHealth: { status: 'ok', version: '0.1.0' },
};
