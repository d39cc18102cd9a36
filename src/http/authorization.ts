import type { IncomingMessage } from 'node:http';
import { countHeader } from './client.ts';

/**
 * Several credentials are as good as none, on every route: Node keeps the first of several Authorization headers, and a
 * proxy may have looked at another.
 */
export function dropSeveralCredentials(request: IncomingMessage): void {
  const { headers } = request;
  if (headers.authorization !== undefined && countHeader(request, 'authorization') > 1) {
    delete headers.authorization;
  }
}
