import { AGENT_REASONS } from '../../src/agents/reasons.ts';
import { ERRORS, type ErrorCode } from '../../src/lib/errors.ts';
import { KEY_SCOPES } from '../../src/schema/route.ts';
import { ALL_ROUTES } from '../../src/schema/routes.ts';

/** Generates docs/errors.md, and the table in docs/api-keys.md. */

type Retry = 'no' | 'after the fix' | 'yes';

/** Advice to callers for each error. */
const ADVICE: Readonly<Record<ErrorCode, readonly [retry: Retry, advice: string]>> = {
  'malformed-sealed-bundle': ['after the fix', 'Send what the agent or `gpd seal` makes, unchanged.'],
  'invalid-json': ['after the fix', 'Send JSON in UTF-8; look for a trailing comma or a cut body.'],
  'invalid-request': ['after the fix', '`details` names each wrong field.'],
  'missing-kid': ['after the fix', 'Add `?kid=KID`.'],
  'attestation-failed': ['yes', 'Ask for a new challenge, then try again.'],
  unauthenticated: [
    'after the fix',
    'Send `Authorization: Bearer …` with a live key, session or token. For a token of your identity provider `details` says what is wrong with it.',
  ],
  'subject-not-identified': [
    'after the fix',
    'Give the token the visitor or principal claim, or link the request first.',
  ],
  'subject-only': ['no', 'Let the person call it with their own token.'],
  'not-your-decision': ['no', 'Contest a visit of this person.'],
  'reviewer-only': ['after the fix', 'Give the account the role in your identity provider.'],
  'cross-tenant-denied': ['no', 'Use an account of that tenant.'],
  'reviewer-tenant-unbound': ['after the fix', 'Give the account the tenant claim.'],
  'not-your-data': ['no', 'Ask for your own data, or as a dpo.'],
  'staff-export-elsewhere': ['no', 'Use `gpd dsar export` or the console.'],
  'self-review-denied': ['no', 'Another reviewer decides.'],
  'insufficient-scope': ['after the fix', 'Use a key of another scope: [API keys](api-keys.md).'],
  'secret-key-in-page': [
    'no',
    'If a page has the key, [replace it](operate/key-compromise.md) and use a publishable key there. A backend leaves out `Origin` and `Sec-Fetch-Site` of its visitor.',
  ],
  'origin-not-allowed': [
    'after the fix',
    'Register the page: `gpd tenants set KID origins=…`, exactly, with its port.',
  ],
  'not-your-principal': ['no', 'Use the session of that person, or a secret key.'],
  'no-such-decision': [
    'no',
    'Check the request id, the tenant of the key, and whether it was erased or is too old.',
  ],
  'no-such-contest': ['no', 'Check the contest id and the tenant.'],
  'no-such-case': ['no', 'Check the case key.'],
  'no-data': ['no', 'Nothing to do: gpd holds nothing.'],
  'no-retained-data': ['no', 'Only with `transparency.retain=summary`, and for five minutes.'],
  'unknown-kid': ['after the fix', 'Check the kid; `gpd tenants list` shows them.'],
  'not-found': ['after the fix', 'Check the path against [openapi.json](openapi.json).'],
  'method-not-allowed': ['after the fix', 'Use a method that the header `Allow` names.'],
  'request-timeout': ['yes', 'Send the body faster, or look at the network.'],
  'already-resolved': ['no', 'Read the contest; its outcome is final.'],
  'claimed-by-another': [
    'no',
    'Ask the colleague, or wait until their claim expires. A browser stays with the account that it was joined with first.',
  ],
  'case-closed': ['no', 'Wait for a question.'],
  'stale-version': ['after the fix', 'Read it again, then send your change with the new version.'],
  'idempotency-conflict': [
    'after the fix',
    'Use a new `Idempotency-Key` for another body. The first outcome of a decision stays.',
  ],
  erased: ['after the fix', 'If the person agreed again, use a new `Idempotency-Key`.'],
  'payload-too-large': ['no', 'Send less; a bundle of the agent is far smaller.'],
  'unsupported-media-type': ['after the fix', 'Set `Content-Type: application/json`, and do not compress.'],
  'unknown-purpose': ['after the fix', 'Define it first: `gpd consent purposes set KID ID --title …`.'],
  'rate-limited': ['yes', 'Wait for `Retry-After` seconds.'],
  'too-many-cases': ['yes', 'Wait for `Retry-After` seconds.'],
  'headers-too-large': [
    'after the fix',
    'Let the site set fewer or narrower cookies, or serve gpd under a name that does not get them.',
  ],
  'consent-missing': ['after the fix', 'Ask the person. Do not retry without a new choice.'],
  internal: ['yes', 'Retry once; then report the `X-Request-Id`. It is a bug.'],
  unavailable: ['yes', 'Wait for `Retry-After` seconds. Treat a consent check as a no.'],
};

const HEAD = `For integrators. Every refusal outside the ingest answer is JSON with an \`error\` from this closed list.

\`\`\`json
{ "error": "unknown-purpose", "message": "The tenant has not defined this purpose.", "details": ["newsletter"] }
\`\`\`

\`message\` and \`details\` are for people and may change; program against \`error\` and the status. Every answer has the header
\`X-Request-Id\`: quote it when you report something. The [SDKs](sdk.md) retry what can be retried, and deny when a check stays undecided.

**Retry?** *yes*: wait (\`Retry-After\` where it is sent), then send the same request. A write needs the same \`Idempotency-Key\`. *after the fix*: not
unchanged. *no*: the answer will not change.`;

const AGENTS_HEAD = `What gpd finds about the signature of a [declared agent](classification.md#declared-agents): *verified*, *none*, *invalid* (gpd has the key, and
something does not hold) or *unverified* (gpd has not). The decision says it, and the agent is not told.`;

export function errorsPage(note: string): string {
  const rows = Object.entries(ERRORS)
    .map(([code, [status]]) => ({ code: code as ErrorCode, status }))
    .sort((a, b) => a.status - b.status || a.code.localeCompare(b.code))
    .map(({ code, status }) => {
      const [retry, advice] = ADVICE[code];
      return `| ${status} | \`${code}\` | ${advice} | ${retry} |`;
    });
  const head = ['| status | code | what to do | retry? |', '|---|---|---|---|'];
  const foot =
    'Reasons of the ingest answer are in [Troubleshooting](troubleshooting.md#the-visit-has-no-verdict).';
  const reasons = Object.entries(AGENT_REASONS).map(
    ([reason, [status, text]]) => `| \`${reason}\` | ${status} | ${text} |`,
  );
  const agents = [
    '## Signatures of agents',
    '',
    AGENTS_HEAD,
    '',
    '| reason | status | cause |',
    '|---|---|---|',
  ];
  return ['# Errors', '', HEAD, '', ...head, ...rows, '', foot, '', ...agents, ...reasons, '', note, ''].join(
    '\n',
  );
}

const SCOPES = [...KEY_SCOPES, 'session'] as const;
const [BEGIN, END] = ['<!-- scopes: begin -->', '<!-- scopes: end -->'];

/** Fills in the table of routes that need an API key or a session, by the scopes that may call them. */
export function apiKeysPage(page: string): string {
  const routesByScopes = new Map<string, string[]>();
  for (const { method, path, credential } of ALL_ROUTES) {
    if (typeof credential === 'string') continue;
    const scopes = SCOPES.filter((scope) => credential.includes(scope)).join(', ');
    const route = `\`${method.toUpperCase()} ${path}\``;
    routesByScopes.set(scopes, [...(routesByScopes.get(scopes) ?? []), route]);
  }
  const rows = [...routesByScopes].map(([scopes, routes]) => `| ${scopes} | ${routes.join(', ')} |`);
  const head = ['| keys of | may call |', '|---|---|'];
  const [before = ''] = page.split(BEGIN);
  const [, after = ''] = page.split(END);
  return [before + BEGIN, ...head, ...rows, END].join('\n') + after;
}
