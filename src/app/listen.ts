import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { type Config, ConfigError } from '../config.ts';
import type { RunningServer } from '../http/server.ts';
import { parseRange, type Range } from '../lib/ip.ts';

/** @throws {ConfigError} */
export function parseRanges(texts: readonly string[]): Range[] {
  return texts.map((text) => {
    try {
      return parseRange(text);
    } catch {
      throw new ConfigError(`GPD_TRUSTED_PROXIES: ${text} is not an address or CIDR`);
    }
  });
}

/** @throws {ConfigError} */
export function readTls(config: Config): { readonly cert: Buffer; readonly key: Buffer } | null {
  if (config.tls_cert === null || config.tls_key === null) return null;
  try {
    return { cert: readFileSync(config.tls_cert), key: readFileSync(config.tls_key) };
  } catch {
    throw new ConfigError(
      'GPD_TLS_CERT or GPD_TLS_KEY cannot be read: name two PEM files that this user may read',
    );
  }
}

function sentence(error: NodeJS.ErrnoException, config: Config): string {
  const where = `${config.host}:${config.port}`;
  const known: Readonly<Record<string, string>> = {
    EADDRINUSE: `${where} is taken by another program: stop it, or choose another port with --port`,
    EACCES: `this user may not listen on ${where}: choose a port above 1023 with --port`,
    EADDRNOTAVAIL: `${config.host} is no address of this machine: choose another with --host`,
  };
  return known[error.code ?? ''] ?? `cannot listen on ${where} (${error.code ?? error.name})`;
}

/** @returns the port that was taken @throws {ConfigError} with what to do about it */
export function listen(running: RunningServer, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    running.server.once('error', (error) => reject(new ConfigError(sentence(error, config))));
    running.server.listen(config.port, config.host, () =>
      resolve((running.server.address() as AddressInfo).port),
    );
  });
}
