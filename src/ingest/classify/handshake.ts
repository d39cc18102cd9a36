import type { Facts } from './facts.ts';

/** What the TLS handshake says about the software that began it. */

/**
 * Parts a and b of JA4, TLS over TCP or QUIC. Part b is the list of ciphers, which outlives many versions. Browsers are from
 * FoxIO's published list and, like the libraries, as measured: Chromium 156, Firefox 153, WebKitGTK 2.50; Python 3.11,
 * Go 1.26, Node 20, Java 17, curl 7.88.
 */
const FAMILY_OF_JA4: readonly (readonly [RegExp, 'blink' | 'gecko' | 'webkit' | 'library'])[] = [
  [/^[tq]13[di]15\d\dh[123]_(?:8daaf6152771|16476d049b0b)$/, 'blink'],
  [/^[tq]13[di](?:17\d\dh[123]_5b57614c22b0|16\d\dh[123]_86a278354501)$/, 'gecko'],
  [/^[tq]13[di](?:20\d\dh[123]_a09f3c656075|29\d\dh2_723694b0fccc)$/, 'webkit'],
  [/^t13[di]\d{4}(?:h[12]|00)_(?:85036bcba153|9dc949149365|a33745022dd6|db35923f8641)$/, 'library'],
  // The ciphers of OpenSSL itself, with h2 as curl sends them: middleboxes that open TLS offer them without.
  [/^t13[di]\d{4}h2_e8f1e7e78f70$/, 'library'],
];

export function tlsContradicts({ network, agent }: Facts): boolean {
  const ja4 = network.ja4?.split('_').slice(0, 2).join('_');
  if (ja4 === undefined || agent.engine === 'unknown') return false;
  const family = FAMILY_OF_JA4.find(([pattern]) => pattern.test(ja4))?.[1];
  return family !== undefined && family !== agent.engine;
}
