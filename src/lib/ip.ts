import ipaddr from 'ipaddr.js';

/** Addresses and ranges: the client behind trusted proxies, and how far a host reaches. */

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type AddressRange = readonly [Address, number];

/** Removes ports, brackets and zone ids; IPv4-mapped IPv6 becomes IPv4. Null: not an address. */
export function parseAddress(text: string): Address | null {
  const trimmed = text.trim();
  const bare =
    /^\[([^\]]+)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ??
    /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(trimmed)?.[1] ??
    trimmed;
  const unzoned = bare.replace(/%[^%]*$/, '');
  if (ipaddr.IPv4.isValidFourPartDecimal(unzoned)) return ipaddr.IPv4.parse(unzoned);
  return ipaddr.IPv6.isValid(unzoned) ? ipaddr.process(unzoned) : null;
}

/**
 * Parses a CIDR, or a single address as a range. An IPv4-mapped range becomes IPv4. Abbreviated and octal
 * spellings are refused, because parsers disagree about them.
 * @throws {Error} when it is neither
 */
export function parseRange(text: string): AddressRange {
  const [base = '', bits, ...rest] = text.split('/');
  const address =
    ipaddr.IPv4.isValidFourPartDecimal(base) || ipaddr.IPv6.isValid(base) ? ipaddr.parse(base) : null;
  const width = address?.kind() === 'ipv4' ? 32 : 128;
  const prefix = bits === undefined ? width : Number(bits);
  const isValid = rest.length === 0 && (bits === undefined || /^\d{1,3}$/.test(bits)) && prefix <= width;
  if (!address || !isValid || /^0\d/.test(base) || /\.0\d/.test(base))
    throw new Error(`not an address or CIDR: ${text}`);
  const v6 = address.kind() === 'ipv6' ? (address as ipaddr.IPv6) : null;
  return v6?.isIPv4MappedAddress() && prefix >= 96 ? [v6.toIPv4Address(), prefix - 96] : [address, prefix];
}

export function inRanges(address: Address, ranges: readonly AddressRange[]): boolean {
  return ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
}

const isV4 = (address: Address): address is ipaddr.IPv4 => address.kind() === 'ipv4';

function prefixOf({ parts }: ipaddr.IPv6, bits: 48 | 64): string {
  const groups = parts.slice(0, bits / 16).map((part) => part.toString(16));
  return `${groups.join(':')}::/${bits}`;
}

/** The key of a client's limits: an IPv4 address, or the /64 of an IPv6 client (contract section 8). */
export const limitKey = (address: Address): string =>
  isV4(address) ? address.toString() : prefixOf(address, 64);

/** The network under which a client is counted: an IPv4 /24, an IPv6 /48. */
export const networkKey = (address: Address): string =>
  isV4(address) ? `${address.octets.slice(0, 3).join('.')}.0/24` : prefixOf(address, 48);

/** The hops of X-Forwarded-For, or else the `for` parameters of Forwarded (RFC 7239), oldest first. */
export function forwardedHops(
  forwardedFor: string | undefined,
  forwarded: string | undefined,
): string[] | null {
  if (forwardedFor !== undefined) return forwardedFor.split(',');
  if (forwarded === undefined) return null;
  return forwarded.split(',').map((element) => {
    const value = /(?:^|;)\s*for=(?:"([^"]*)"|([^;\s]*))/i.exec(element);
    return value?.[1] ?? value?.[2] ?? '';
  });
}

/**
 * Finds the client behind the trust boundary: walks from the peer through the hops, right to left, while each
 * is a trusted proxy. The first untrusted address is the client; garbage ends the walk at the last valid hop.
 */
export function resolveClient(
  peer: string | undefined,
  hops: readonly string[] | null,
  trusted: readonly AddressRange[],
) {
  let client = peer === undefined ? null : parseAddress(peer);
  const behindProxy = client !== null && inRanges(client, trusted);
  for (let i = (hops?.length ?? 0) - 1; i >= 0 && client !== null && inRanges(client, trusted); i -= 1) {
    const hop = parseAddress(hops?.[i] ?? '');
    if (!hop) break;
    client = hop;
  }
  return {
    address: client,
    /** The peer is a trusted proxy, so its headers about the client are believed. */
    behindProxy,
    /** A forwarding header came from an untrusted peer and was ignored. */
    untrustedForwarded: !behindProxy && hops !== null,
  };
}

/** True for `localhost` or an address of this machine; accepts brackets around IPv6. */
export const isLoopback = (host: string): boolean => hostReach(host) === 'loopback';

const AUTHORITY = /^(localhost|[\d.]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/**
 * True for a Host header (RFC 9110 section 7.2) that names this machine. Any other name may be a foreign site
 * that resolves to this address (DNS rebinding).
 */
export const isLoopbackAuthority = (authority: string): boolean =>
  isLoopback(AUTHORITY.exec(authority)?.[1]?.toLowerCase() ?? '');

/**
 * Says whether a host is reached from this machine, this network, or anywhere. A name that is not an address
 * counts as public.
 */
export function hostReach(host: string): 'loopback' | 'private' | 'public' {
  const bare = host.replace(/^\[|\]$/g, '');
  if (bare === 'localhost') return 'loopback';
  const range = parseAddress(bare)?.range();
  if (range === 'loopback') return 'loopback';
  return range === 'private' || range === 'uniqueLocal' || range === 'linkLocal' ? 'private' : 'public';
}
