import type { HotRequest } from './hot.ts';

/** The network tier as the classifier sees it: header facts behind the trust boundary. Nothing of it is stored. */
export type NetworkFacts = ReturnType<typeof readNetwork>;

export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A header's value as one text, or null. */
export function headerText(headers: HeaderMap, name: string): string | null {
  const value = headers[name];
  if (value === undefined) return null;
  return typeof value === 'string' ? value : value.join(', ');
}

/** What the trust boundary knows of a request apart from its body. */
export interface RequestTier extends Pick<HotRequest, 'https' | 'ja4'> {
  /** With lower-case names, as `node:http` gives them. */
  readonly headers: HeaderMap;
  readonly hosting: boolean | null;
}

export function readNetwork(tier: RequestTier) {
  const { headers, https, ja4, hosting } = tier;
  return {
    userAgent: headerText(headers, 'user-agent'),
    acceptLanguage: headerText(headers, 'accept-language'),
    secChUa: headerText(headers, 'sec-ch-ua'),
    secChUaPlatform: headerText(headers, 'sec-ch-ua-platform'),
    secFetchSite: headerText(headers, 'sec-fetch-site'),
    /** JA4 as a trusted proxy hands it over; only its parts a and b are looked at. */
    ja4,
    https,
    /** The client's network is one of a hosting provider; null: nobody knows. */
    hosting,
  };
}

/** `Sec-GPC: 1` and nothing else (Global Privacy Control, section 3.2); of several, one is enough to be heard. */
export function hasGpcHeader(headers: HeaderMap): boolean {
  const values = headerText(headers, 'sec-gpc')?.split(',') ?? [];
  return values.some((value) => value.trim() === '1');
}
