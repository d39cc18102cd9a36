/**
 * Rules by which a client of gpd treats an answer, in every language (sdk/SPEC.md sections 4 and 5). The
 * OpenAPI document carries them as `x-gpd-client`, from which the SDKs are generated.
 */
export const CLIENT_RULES = {
  /** Kinds of error by status. Other 4xx are `invalid-request`, 5xx `server`, all others `response`. */
  kinds: {
    401: 'unauthenticated',
    403: 'permission-denied',
    404: 'not-found',
    408: 'timeout',
    409: 'conflict',
    429: 'rate-limited',
  },
  /** A check raises these and every 3xx: the caller has to fix something, and a denial would hide it. */
  raised: [400, 401, 403, 404, 405, 407, 413, 415, 422],
  retried: [408, 429, 500, 502, 503, 504],
  errorKinds: [
    ...(['config', 'invalid-request', 'unauthenticated', 'permission-denied', 'not-found'] as const),
    ...(['conflict', 'rate-limited', 'server', 'network', 'timeout', 'response', 'proof'] as const),
  ],
  /** Why there is no answer, or none of gpd. */
  details: ['dns', 'refused', 'reset', 'tls', 'protocol', 'proxy', 'body'],
} as const;
