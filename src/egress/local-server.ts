import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { get as getHttp } from 'node:http';
import { get as getHttps, type RequestOptions } from 'node:https';

/** Sends requests to the server of this configuration, from the same machine. */

interface Listener {
  readonly host: string;
  readonly port: number;
  readonly tls_cert: string | null;
}

const TIMEOUT_MS = 3000;

/** An address that a client can use instead of a wildcard. */
function connectHost({ host }: Listener): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** The address of this configuration's server, as seen from this machine. */
export function localUrl(listener: Listener): string {
  const host = connectHost(listener);
  const scheme = listener.tls_cert === null ? 'http' : 'https';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`;
}

/**
 * Trusts only the leaf certificate of this file. It names the public host and may come from a private CA; the
 * name is not compared, because the connection goes to an address of this machine.
 */
function pinTo(path: string): RequestOptions {
  const leaf = new X509Certificate(readFileSync(path)).toString();
  return { ca: leaf, allowPartialTrustChain: true, checkServerIdentity: () => undefined };
}

/** Error codes of a certificate that is not the pinned one, whatever its issuer. */
const NOT_PINNED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

class OtherCertificate extends Error {
  override readonly name = 'OtherCertificate';

  constructor(cause: Error) {
    super('the server presents another certificate than GPD_TLS_CERT: restart it', { cause });
  }
}

const named = (error: NodeJS.ErrnoException): Error =>
  NOT_PINNED.has(error.code ?? '') ? new OtherCertificate(error) : error;

/**
 * With GPD_TLS_CERT the server must present exactly that certificate.
 * @throws {Error} as node:https does: no answer, an expired certificate, or another one
 */
export async function askLocalServer(listener: Listener, path: string, timeoutMs = TIMEOUT_MS) {
  const { port, tls_cert: cert } = listener;
  const [get, pinned] = cert === null ? [getHttp, {}] : [getHttps, pinTo(cert)];
  const signal = AbortSignal.timeout(timeoutMs);
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const options = { ...pinned, host: connectHost(listener), port, path, signal, agent: false };
    get(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text })).on('error', reject);
    }).on('error', (error) => reject(named(error)));
  });
}
