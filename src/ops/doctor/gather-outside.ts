import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { open } from 'maxmind';
import { countMilliseconds, validityOf } from '../../agents/directory.ts';
import { listDirectories } from '../../agents/store.ts';
import { baseUrl, type Config } from '../../config.ts';
import type { Database } from '../../db/db.ts';
import { probe } from '../../egress/gpd-client.ts';
import { EgressRefused } from '../../egress/guard.ts';
import { fetchSigningKeys } from '../../egress/oidc-discovery.ts';
import { greetRelay, parseRelay } from '../../egress/smtp.ts';
import { orElse } from '../../lib/functions.ts';
import { countOutbox, listWebhooks } from '../../webhooks/store.ts';
import { fileFact } from './gather-files.ts';
import { oldestWaiting } from './inspect-store.ts';

/** Certificates, the identity provider, the running server, and whom it asks and tells. */

export function gatherTls(config: Config) {
  const { tls_cert: cert, tls_key: key } = config;
  if (cert === null || key === null) return null;
  const read = () => {
    const leaf = new X509Certificate(readFileSync(cert));
    const host = new URL(baseUrl(config)).hostname.replace(/^\[|\]$/g, '');
    const covered = isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host);
    return {
      readable: true,
      matches: leaf.checkPrivateKey(createPrivateKey(readFileSync(key))),
      validFrom: Date.parse(leaf.validFrom),
      validTo: Date.parse(leaf.validTo),
      /** Whether it names the host of the base URL. */
      coversHost: covered !== undefined,
    };
  };
  const unread = { readable: false, matches: false, validFrom: 0, validTo: 0, coversHost: false };
  return { ...orElse(read, unread), keyFile: fileFact(key) };
}

export async function gatherMmdb(config: Config) {
  if (config.mmdb_file === null) return null;
  const found = await open(config.mmdb_file).catch(() => null);
  return { readable: found !== null, builtAt: found?.metadata.buildEpoch.getTime() ?? 0 };
}

/**
 * Reads the issuer's keys as the server does: `problem` is why it could not, as the server words it. `skewMs` is the
 * provider's clock minus ours. Null: no issuer is set.
 */
export async function gatherOidc(config: Config) {
  if (config.oidc_issuer === null) return null;
  const sentAt = Date.now();
  const date = (await probe(`${config.oidc_issuer}/.well-known/openid-configuration`))?.date ?? null;
  // A Date header has no fractions of a second.
  const skewMs = date === null ? null : date + 500 - (sentAt + Date.now()) / 2;
  try {
    const keys = await fetchSigningKeys(config.oidc_issuer);
    return { problem: null, usableKeys: keys.length, skewMs };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : 'it cannot be read', usableKeys: 0, skewMs };
  }
}

/** Greets the relay and sends nothing. Null: none is set. */
export async function gatherRelay({ smtp_url: url }: Config) {
  if (url === null) return null;
  return greetRelay(parseRelay(url)).then(
    () => ({ problem: null }),
    (error: unknown) => ({ problem: error instanceof EgressRefused ? error.message : 'it cannot be used' }),
  );
}

export async function gatherAgents(database: Database, now: number) {
  const seconds = now / 1000;
  return (await listDirectories(database)).map(({ url, source, fetchedAt, failure, keys }) => {
    const usable = keys.map(validityOf).filter(({ nbf, exp }) => nbf <= seconds && seconds < exp);
    const inMilliseconds = countMilliseconds(keys);
    return { url, source, fetchedAt, failure, usableKeys: usable.length, inMilliseconds };
  });
}

export async function gatherWebhooks(database: Database) {
  const found = [];
  for (const { kid, id, url } of await listWebhooks(database)) {
    const counts = (await countOutbox(database, kid)).filter(({ webhook }) => webhook === id);
    const of = (state: string): number => counts.find((row) => row.state === state)?.count ?? 0;
    found.push({
      name: `${kid} ${id}`,
      plain: url.startsWith('http:'),
      failed: of('failed'),
      waiting: of('waiting'),
      oldestWaitingAt: await oldestWaiting(database, kid, id),
    });
  }
  return found;
}
