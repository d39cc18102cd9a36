import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ask, openWire } from '../../support/http.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';

/** Twice Node's default; Linux allows 4,096 unless the machine says otherwise. */
const CONNECTIONS = 1024;

let gpd: GpdProcess;
beforeAll(async () => {
  gpd = await startProcess({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
});
afterAll(() => gpd.stop());

it('makes a crowd of connections wait while it is busy, and answers each', async () => {
  expect(Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))).toBeGreaterThan(CONNECTIONS);
  process.kill(gpd.pid, 'SIGSTOP');
  // The kernel drops the SYN of a connection for which there is no room, and tries again for a minute.
  const wires = await Promise.all(Array.from({ length: CONNECTIONS }, () => openWire(gpd.port))).finally(() =>
    process.kill(gpd.pid, 'SIGCONT'),
  );
  for (const wire of wires) wire.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  for (const wire of wires) await wire.until(/^HTTP\/1\.1 200 /);
  for (const wire of wires) wire.close();
  expect((await ask(gpd.url, '/healthz')).status).toBe(200);
});
