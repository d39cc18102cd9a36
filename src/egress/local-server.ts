import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

/** Questions to the server of a configuration, from the same machine. */

interface Listener {
  readonly host: string;
  readonly port: number;
  readonly tls_cert: string | null;
}

const TIMEOUT_MS = 3000;

/** An address that a client can connect to in place of a wildcard. */
function connectHost({ host }: Listener): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** Where a server of this configuration listens, as seen from this machine. */
export function localUrl(listener: Listener): string {
  const host = connectHost(listener);
  const scheme = listener.tls_cert === null ? 'http' : 'https';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`;
}

/**
 * The certificate is not verified: it names the public host, or comes from a private CA, and this is the same machine.
 * @throws as node:http does, where nothing answers
 */
export function askLocalServer(listener: Listener, path: string, timeoutMs = TIMEOUT_MS) {
  const { port } = listener;
  const get = listener.tls_cert === null ? getHttp : getHttps;
  const signal = AbortSignal.timeout(timeoutMs);
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const options = { host: connectHost(listener), port, path, signal, rejectUnauthorized: false };
    get({ ...options, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text })).on('error', reject);
    }).on('error', reject);
  });
}
