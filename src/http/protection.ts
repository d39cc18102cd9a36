import type { ServerResponse } from 'node:http';
import { HSTS_SECONDS, type Reply } from './reply.ts';

/** The headers of every answer that a browser may open (OWASP Secure Headers Project). */

/** Scripts, styles and fonts from this origin only, nothing inline, no framing. */
const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join(';');

const ORDINARY = {
  'Content-Security-Policy': CSP,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-DNS-Prefetch-Control': 'off',
  'X-Download-Options': 'noopen',
  'X-Frame-Options': 'DENY',
  'X-Permitted-Cross-Domain-Policies': 'none',
  // The filter of old browsers could be turned against a page.
  'X-XSS-Protection': '0',
};

/** A JSON answer of a hot route loads nothing and may not be framed. */
const HOT = { 'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'" };

/** @param https the public origin is https; HSTS is never set for the operator's other hosts */
export function createProtection(https: boolean) {
  const transport = https && { 'Strict-Transport-Security': `max-age=${HSTS_SECONDS}` };
  const listed = (headers: object) =>
    Object.entries({ ...headers, ...transport }).map(([name, value]) => [name, value, name.toLowerCase()]);
  const lists = { hot: listed(HOT), ordinary: listed(ORDINARY) } as const;
  return {
    /** Names and values in turn, without what the reply says itself. */
    of({ headers }: Reply, isHot: boolean): string[] {
      const found: string[] = [];
      for (const [name = '', value = '', lower = ''] of isHot ? lists.hot : lists.ordinary)
        if (headers[lower] === undefined) found.push(name, value);
      return found;
    },
    /** Sets them on an answer of Express, whose handlers may change them. */
    set(response: ServerResponse): void {
      for (const [name = '', value = ''] of lists.ordinary) response.setHeader(name, value);
    },
  };
}
