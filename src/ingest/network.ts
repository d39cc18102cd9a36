/** The network tier as the classifier sees it: header facts behind the trust boundary. Nothing of it is stored. */
export interface NetworkFacts {
  readonly userAgent: string | null;
  readonly acceptLanguage: string | null;
  readonly secChUa: string | null;
  readonly secChUaPlatform: string | null;
  readonly secFetchSite: string | null;
  /** JA4 as a trusted proxy hands it over; only its parts a and b are looked at. */
  readonly ja4: string | null;
  readonly https: boolean;
}

export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A header's value as one text, or null. */
export function headerText(headers: HeaderMap, name: string): string | null {
  const value = headers[name];
  if (value === undefined) return null;
  return typeof value === 'string' ? value : value.join(', ');
}

/** @param headers with lower-case names, as `node:http` gives them */
export function readNetwork(headers: HeaderMap, https: boolean, ja4: string | null = null): NetworkFacts {
  return {
    userAgent: headerText(headers, 'user-agent'),
    acceptLanguage: headerText(headers, 'accept-language'),
    secChUa: headerText(headers, 'sec-ch-ua'),
    secChUaPlatform: headerText(headers, 'sec-ch-ua-platform'),
    secFetchSite: headerText(headers, 'sec-fetch-site'),
    ja4,
    https,
  };
}

/** `Sec-GPC: 1` and nothing else (Global Privacy Control, section 3.2). */
export function hasGpcHeader(headers: HeaderMap): boolean {
  return headerText(headers, 'sec-gpc')?.trim() === '1';
}
