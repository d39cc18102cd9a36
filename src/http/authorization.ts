import type { IncomingMessage } from 'node:http';

/**
 * The Authorization header, if there is exactly one. Node keeps the first of several and a proxy may have looked at
 * another, so several are as good as none.
 */
export function soleAuthorization(request: IncomingMessage): string | undefined {
  const values = request.headersDistinct['authorization'] ?? [];
  return values.length === 1 ? values[0] : undefined;
}
