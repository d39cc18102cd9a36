import { stat } from 'node:fs/promises';
import { open } from 'maxmind';
import { ConfigError } from '../config.ts';
import type { Address } from '../lib/ip.ts';

/** True if the client's network belongs to a hosting provider; null if that is unknown. */
export type IsHosting = (client: Address | null) => boolean | null;

/** Used without GPD_MMDB_FILE. */
export const UNKNOWN_NETWORKS: NetworkTypes = { isHosting: () => null, refresh: async () => {} };

/** MaxMind's Anonymous IP, Enterprise and Insights databases say it in one of these places. */
interface NetworkRecord {
  readonly is_hosting_provider?: boolean;
  readonly traits?: { readonly is_hosting_provider?: boolean; readonly user_type?: string };
}

function readHosting(record: NetworkRecord | null): boolean | null {
  const traits = record?.traits;
  const isHosting = record?.is_hosting_provider ?? traits?.is_hosting_provider;
  if (isHosting !== undefined) return isHosting;
  return traits?.user_type === undefined ? null : traits.user_type === 'hosting';
}

const openReader = (file: string) =>
  open<NetworkRecord & Record<string, never>>(file, { cache: { max: 10_000 } }).catch(() => {
    throw new ConfigError(`GPD_MMDB_FILE: ${file} cannot be read as a MaxMind database`);
  });

/** Changes when the file is replaced or its content changes. */
async function versionOf(file: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(file);
  return `${ino} ${size} ${mtimeMs}`;
}

export type NetworkTypes = Awaited<ReturnType<typeof openNetworkTypes>>;

/**
 * GPD_MMDB_FILE: a local MaxMind database; no address leaves this machine.
 * @throws {ConfigError} when it is not such a file
 */
export async function openNetworkTypes(file: string) {
  let reader = await openReader(file);
  let version = await versionOf(file);
  const isHosting: IsHosting = (client) =>
    client === null ? null : readHosting(reader.get(client.toString()));
  return {
    isHosting,
    /**
     * Reads a file that was replaced.
     * @throws {Error} if it cannot be read; then the previous one stays in use
     */
    refresh: async (): Promise<void> => {
      const now = await versionOf(file);
      if (now === version) return;
      reader = await openReader(file);
      version = now;
    },
  };
}
