/** Values of a cookie, in the order in which they were sent (RFC 6265 section 5.4): a sibling host may have set one too. */
export function cookieValues(header: string | undefined, name: string): string[] {
  return (header ?? '').split(';').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at !== -1 && pair.slice(0, at).trim() === name ? [pair.slice(at + 1).trim()] : [];
  });
}

export function cookieNames(header: string | undefined): string[] {
  return (header ?? '').split(';').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at === -1 ? [] : [pair.slice(0, at).trim()];
  });
}
