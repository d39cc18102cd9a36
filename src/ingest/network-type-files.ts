import { open } from 'maxmind';
import { ConfigError } from '../config.ts';
import type { Address } from '../lib/ip.ts';

/** Is this client's network one of a hosting provider? Null: nobody knows. */
export type IsHosting = (client: Address | null) => boolean | null;

export const unknownNetwork: IsHosting = () => null;

/** MaxMind's Anonymous IP, Enterprise and Insights databases say it in one of these places. */
interface NetworkRecord {
  readonly is_hosting_provider?: boolean;
  readonly traits?: { readonly is_hosting_provider?: boolean; readonly user_type?: string };
}

function readHosting(record: NetworkRecord | null): boolean | null {
  const traits = record?.traits;
  const said = record?.is_hosting_provider ?? traits?.is_hosting_provider;
  if (said !== undefined) return said;
  return traits?.user_type === undefined ? null : traits.user_type === 'hosting';
}

/**
 * GPD_MMDB_FILE: a local MaxMind database; no address leaves this machine.
 * @throws {ConfigError} when it is not such a file
 */
export async function openNetworkTypes(file: string): Promise<IsHosting> {
  try {
    const reader = await open<NetworkRecord & Record<string, never>>(file, { cache: { max: 10_000 } });
    return (client) => (client === null ? null : readHosting(reader.get(client.toString())));
  } catch {
    throw new ConfigError(`GPD_MMDB_FILE: ${file} cannot be read as a MaxMind database`);
  }
}
