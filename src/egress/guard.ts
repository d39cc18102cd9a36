import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { type Address, inRanges, parseAddress, parseRange } from '../lib/ip.ts';

/**
 * Guards every outgoing connection to an address that someone else named: it connects to exactly the address
 * that it checked.
 */

export class EgressRefused extends Error {
  override readonly name = 'EgressRefused';
}

export type AllowAddress = (address: Address) => boolean;

/**
 * RFC 4291 section 2.4: only 2000::/3 of IPv6 has been assigned; ::7f00:1 is an IPv4-compatible loopback
 * address.
 */
const GLOBAL_IPV6 = [parseRange('2000::/3')];
/** Azure's host agent answers each virtual machine there, at an address that looks public. */
const AZURE_HOST = [parseRange('168.63.129.16')];

/**
 * Allows public unicast only: no loopback, private, link-local, carrier, documentation, multicast or
 * translated range.
 */
export const publicOnly: AllowAddress = (address) =>
  address.range() === 'unicast' &&
  (address.kind() === 'ipv4' ? !inRanges(address, AZURE_HOST) : inRanges(address, GLOBAL_IPV6));

function allowed(text: string, allow: AllowAddress): boolean {
  const address = parseAddress(text);
  return address !== null && allow(address);
}

/** Node connects to a literal address without asking a resolver. @throws {EgressRefused} */
export function checkLiteralHost(hostname: string, allow: AllowAddress): void {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (isIP(bare) !== 0 && !allowed(bare, allow)) throw new EgressRefused('the address is not public');
}

/** A resolver for `node:https`: one forbidden address among the answers refuses them all (DNS rebinding). */
export function guardedLookup(allow: AllowAddress): LookupFunction {
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, answers) => {
      const addresses: readonly LookupAddress[] = error ? [] : answers;
      const [first] = addresses;
      if (error) callback(error, '', 0);
      else if (!first || !addresses.every(({ address }) => allowed(address, allow))) {
        callback(new EgressRefused('the name resolves to an address that is not public'), '', 0);
      } else if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };
}
