import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Range = readonly [Address, number];

/** Ports, brackets and zone ids are taken off; IPv4-mapped IPv6 becomes IPv4. Null: not an address. */
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

/** A CIDR, or a single address as its own range. @throws when it is neither */
export function parseRange(text: string): Range {
  if (text.includes('/')) return ipaddr.parseCIDR(text);
  const address = parseAddress(text);
  if (!address) throw new Error(`not an address or CIDR: ${text}`);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

export function inRanges(address: Address, ranges: readonly Range[]): boolean {
  return ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
}

/** What a limit is keyed on: an IPv4 address, or the /64 of an IPv6 client (contract section 8). */
export function limitKey(address: Address): string {
  if (address.kind() === 'ipv4') return address.toString();
  const parts = (address as ipaddr.IPv6).parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`;
}

export interface ResolvedClient {
  readonly address: Address | null;
  /** X-Forwarded-For came from a peer that is not trusted: it was ignored. */
  readonly strangerForwarded: boolean;
}

/**
 * The client behind the trust boundary: from the peer back through X-Forwarded-For, right to left, as long as each hop
 * is a trusted proxy. The first untrusted address is the client; garbage ends the walk at the last good hop.
 */
export function resolveClient(
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: readonly Range[],
): ResolvedClient {
  let client = peer === undefined ? null : parseAddress(peer);
  if (forwardedFor === undefined || client === null) return { address: client, strangerForwarded: false };
  if (!inRanges(client, trusted)) return { address: client, strangerForwarded: true };
  const hops = forwardedFor.split(',');
  for (let i = hops.length - 1; i >= 0 && inRanges(client, trusted); i -= 1) {
    const hop = parseAddress(hops[i] ?? '');
    if (!hop) break;
    client = hop;
  }
  return { address: client, strangerForwarded: false };
}
