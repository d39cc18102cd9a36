import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConnectionOptions, connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gpdJson, tempDir } from '../support/command.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** https without a proxy: what is spoken, and what is not. */

let gpd: Gpd;
let ca: Buffer;
beforeAll(async () => {
  const out = join(tempDir('tls'), 'tls');
  await gpdJson(['tls', 'init', '--host', 'localhost', '--host', '127.0.0.1', '--out', out]);
  ca = readFileSync(join(out, 'ca.crt'));
  gpd = await startGpd({
    settings: { GPD_TLS_CERT: join(out, 'server.crt'), GPD_TLS_KEY: join(out, 'server.key') },
  });
});
afterAll(() => gpd.stop());

/** Old protocols and ciphers, which OpenSSL's own level would keep a client from offering. */
const WEAK = '@SECLEVEL=0';

function shake(options: ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port: gpd.port, host: '127.0.0.1', ca, ...options }, () => {
      resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
      socket.destroy();
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(`refused: ${error.code}`));
  });
}

describe('TLS', () => {
  it('is 1.3 where the client speaks it, else 1.2 with forward secrecy', async () => {
    expect(await shake({})).toBe('TLSv1.3 TLS_AES_256_GCM_SHA384');
    expect(await shake({ maxVersion: 'TLSv1.2' })).toMatch(/^TLSv1\.2 ECDHE-\w+-AES256-GCM-SHA384$/);
  });

  it.each(['TLSv1', 'TLSv1.1'] as const)('is not %s', async (version) => {
    const old = { minVersion: version, maxVersion: version, ciphers: `ALL:${WEAK}` };
    expect(await shake(old)).toMatch(/^refused: /);
  });

  it.each(['AES128-GCM-SHA256', 'AES256-SHA', 'ECDHE-RSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA', 'NULL-SHA'])(
    'is not 1.2 with %s',
    async (cipher) =>
      expect(await shake({ maxVersion: 'TLSv1.2', ciphers: `${cipher}:${WEAK}` })).toMatch(/^refused: /),
  );

  it('shows a certificate that its CA vouches for, and no other', async () => {
    expect(await Promise.all([shake({}), shake({ ca: [] })])).toEqual([
      'TLSv1.3 TLS_AES_256_GCM_SHA384',
      'refused: UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ]);
  });

  it('a sender of 8 MB hears of 413, ten times of ten', async () => {
    const head = 'POST /_fp/i/v1 HTTP/1.1\r\nHost: gpd.test\r\nContent-Type: application/json\r\n';
    const size = 8 * 1024 * 1024;
    const send = (): Promise<string> =>
      new Promise((resolve) => {
        let text = '';
        const socket = connect({ port: gpd.port, host: '127.0.0.1', ca }, () => {
          socket.write(`${head}Content-Length: ${size}\r\n\r\n`);
          socket.write(Buffer.alloc(size, 'x'));
        });
        socket.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        socket.on('error', () => {});
        socket.on('close', () => resolve(text.slice(0, 12)));
      });
    for (let i = 0; i < 10; i += 1) expect(await send()).toBe('HTTP/1.1 413');
  });
});
