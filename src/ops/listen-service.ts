import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createSecureContext, type TlsOptions } from 'node:tls';
import type { Logger } from 'pino';
import { type Config, ConfigError } from '../config.ts';
import { BACKLOG } from '../http/connections.ts';
import type { RunningServer } from '../http/server.ts';
import { succeeds, tryOr } from '../lib/errors.ts';
import { type AddressRange, parseRange } from '../lib/ip.ts';

/** Opens the server's listener: trusted proxies, TLS files, address or socket of the unit. */

/** @throws {ConfigError} */
export function parseRanges(texts: readonly string[]): AddressRange[] {
  return texts.map((text) => {
    const range = tryOr(() => parseRange(text), null);
    if (!range) throw new ConfigError(`GPD_TRUSTED_PROXIES: ${text} is not an address or CIDR`);
    return range;
  });
}

/**
 * Only forward secrecy and authenticated encryption (RFC 9325 section 4.2). Explicit, so that NODE_OPTIONS
 * cannot weaken it.
 */
const TLS_POLICY = {
  minVersion: 'TLSv1.2',
  honorCipherOrder: true,
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
  ].join(':'),
} as const satisfies TlsOptions;

/** @throws {ConfigError} */
export function readTls(config: Config): TlsOptions | null {
  const { tls_cert, tls_key } = config;
  if (tls_cert === null || tls_key === null) return null;
  const pair = tryOr(() => ({ cert: readFileSync(tls_cert), key: readFileSync(tls_key) }), null);
  if (!pair)
    throw new ConfigError(
      'GPD_TLS_CERT or GPD_TLS_KEY cannot be read: name two PEM files that this user may read',
    );
  if (!succeeds(() => createSecureContext(pair)))
    throw new ConfigError(
      'GPD_TLS_CERT and GPD_TLS_KEY are not a PEM certificate and its private key: `gpd doctor` says more',
    );
  return { ...TLS_POLICY, ...pair };
}

/** Browsers refuse an expired certificate; the server starts, so that its pages can still say so. */
export function noteCertificate({ cert }: TlsOptions, now: number, log: Pick<Logger, 'error'>): void {
  const { validTo } = new X509Certificate(cert as Buffer);
  if (Date.parse(validTo) < now)
    log.error({ event: 'certificate-expired', expiredAt: validTo, hint: 'gpd tls csr; then restart' });
}

function explainListenError(error: NodeJS.ErrnoException, config: Config, fd: number | null): string {
  if (fd !== null) return `the socket of the unit does not listen (${error.code ?? error.name})`;
  const address = `${config.host}:${config.port}`;
  const sentences: Readonly<Record<string, string>> = {
    EADDRINUSE: `${address} is in use by another program: stop it, or choose another port with --port`,
    EACCES: `cannot listen on ${address}: permission denied; choose a port above 1023 with --port`,
    EADDRNOTAVAIL: `${config.host} is not an address of this machine: choose another with --host`,
  };
  return sentences[error.code ?? ''] ?? `cannot listen on ${address} (${error.code ?? error.name})`;
}

/** A UNIX socket has no client address, which the rate limits need. */
const NO_TCP = 'the socket of the unit is not a TCP socket: set ListenStream=ADDRESS:PORT';

function portOf(server: Server): number | null {
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : null;
}

/**
 * @param fd descriptor of a socket that is already listening, instead of host and port
 * @returns the port @throws {ConfigError} with a remedy
 */
export function listen({ server }: RunningServer, config: Config, fd: number | null): Promise<number> {
  return new Promise((resolve, reject) => {
    const onListening = (): void => {
      const port = portOf(server);
      if (port !== null) resolve(port);
      else server.close(() => reject(new ConfigError(NO_TCP)));
    };
    server.once('error', (error) => reject(new ConfigError(explainListenError(error, config, fd))));
    const at = fd === null ? { port: config.port, host: config.host } : { fd };
    server.listen({ ...at, backlog: BACKLOG }, onListening);
  });
}
