import type { ErrorDetail } from './errors.ts';

/** Finds out why a fetch failed, from the codes of Node, its HTTP client, OpenSSL, Bun and Deno. */

const DETAILS: readonly (readonly [ErrorDetail, RegExp])[] = [
  ['dns', /^(ENOTFOUND|EAI_\w+)$/],
  [
    'refused',
    /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused)$/,
  ],
  ['reset', /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|ConnectionClosed)$/],
  ['tls', /^(EPROTO|ERR_(TLS|SSL|OSSL)_\w+|\w*CERT\w*|UNABLE_TO_\w+|HOSTNAME_MISMATCH)$/],
  ['protocol', /^(HPE_\w+|UND_ERR_HEADERS_OVERFLOW|UND_ERR_\w*RES\w*|Malformed_HTTP_Response)$/],
];

/** Deno and workerd have no codes, and workerd says the same of a refused port. */
const MESSAGES: typeof DETAILS = [
  ['dns', /\bdns error: /],
  ['refused', /\btcp connect error: /],
  ['tls', /: (invalid peer certificate|received corrupt message)\b/],
  ['protocol', /: invalid HTTP version\b/],
  ['reset', /^(Network connection lost\.|Connection reset by peer\b|error reading a body from connection)/],
];

export function reasonOf(error: unknown): { readonly detail: ErrorDetail | null; readonly cause?: string } {
  if (!(error instanceof Error)) return { detail: null };
  const inner = error.cause instanceof Error ? error.cause : error;
  const { code } = inner as { readonly code?: unknown };
  // Fetch makes a network error of a 407. It is the only one of undici that has neither code nor message.
  const isProxy = code === undefined && ['', 'proxy authentication required'].includes(inner.message);
  if (isProxy && inner !== error) return { detail: 'proxy' };
  if (typeof code !== 'string' || !/^\w{1,64}$/.test(code)) {
    return { detail: MESSAGES.find(([, words]) => words.test(inner.message))?.[0] ?? null };
  }
  return { detail: DETAILS.find(([, codes]) => codes.test(code))?.[0] ?? null, cause: code };
}
