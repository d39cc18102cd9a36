import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IngestResponse } from '../../src/schema/responses.ts';
import { execute } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { desktopChrome, type SampleSignals } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** The trust boundary of a running server: what a proxy of ours says is believed, what a stranger says is not. */

const FIREFOX_TLS = 't13d1715h2_5b57614c22b0_3d5424432f57';
const SETTINGS = { GPD_JA4_HEADER: 'X-JA4', GPD_MAX_NETWORKS_PER_DAY: '3', GPD_COLLISION_RISK: '1' };

let behind: Gpd;
let open: Gpd;
beforeAll(async () => {
  behind = await startGpd({
    settings: { ...SETTINGS, GPD_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8', GPD_RATE_INGEST: '9/60' },
  });
  open = await startGpd({ settings: { ...SETTINGS, GPD_RATE_INGEST: '600/60' } });
});
afterAll(() => Promise.all([behind.stop(), open.stop()]));

type Headers = Readonly<Record<string, string>>;

async function ingest(gpd: Gpd, headers: Headers, signals?: SampleSignals): Promise<IngestResponse> {
  const bundle = createBundle(gpd.targets[0]!, signals === undefined ? {} : { signals });
  return expectCore(await post(gpd.url, bundle, headers), 'ok');
}

async function rulesOf(gpd: Gpd, headers: Headers): Promise<string[]> {
  const { requestId } = await ingest(gpd, headers);
  const rows = await execute(gpd.dataDir, `SELECT verdict FROM decisions WHERE request_id = '${requestId}'`);
  const { rules } = JSON.parse(String(rows[0]?.['verdict'])) as { rules: { id: string }[] };
  return rules.map(({ id }) => id);
}

let hosts = 0;
/** A client that no other test uses. */
const client = (): string => {
  hosts += 1;
  return `203.0.113.${hosts}`;
};

describe('a proxy of ours, and a stranger', () => {
  it('send a JA4 header: that of the proxy is looked at, and never stored', async () => {
    expect(await rulesOf(behind, { 'x-forwarded-for': client(), 'x-ja4': FIREFOX_TLS })).toEqual(['N1']);
    expect(await rulesOf(behind, { 'x-forwarded-for': client() })).toEqual([]);
    expect(await rulesOf(open, { 'x-ja4': FIREFOX_TLS })).toEqual([]);
    expect(await rulesOf(open, { 'x-ja4': FIREFOX_TLS, 'x-forwarded-for': '203.0.113.1' })).toEqual([]);
    const rows = await execute(behind.dataDir, 'SELECT * FROM decisions');
    expect(JSON.stringify(rows)).not.toContain('5b57614c22b0');
  });

  it('send X-Forwarded-Proto: that of the proxy makes the request https', async () => {
    // N2 judges https alone: Chromium sends client hints to secure origins only.
    const bare = { 'sec-ch-ua': '' };
    const proto = { ...bare, 'x-forwarded-proto': 'https' };
    expect(await rulesOf(behind, { ...proto, 'x-forwarded-for': client() })).toEqual(['N2']);
    expect(await rulesOf(behind, { ...bare, 'x-forwarded-for': client() })).toEqual([]);
    expect(await rulesOf(open, proto)).toEqual([]);
  });
});

describe('the networks of a device', () => {
  it('are those behind the proxy: the fourth of three allowed needs attestation', async () => {
    const signals = desktopChrome();
    const needed: boolean[] = [];
    for (const network of [1, 2, 2, 3, 4, 1]) {
      const headers = { 'x-forwarded-for': `198.18.${network}.${10 + needed.length}` };
      needed.push((await ingest(behind, headers, signals)).needsAttestation ?? false);
    }
    expect(needed).toEqual([false, false, false, false, true, true]);
  });

  it('cannot be multiplied by a stranger', async () => {
    const signals = desktopChrome();
    for (let i = 0; i < 8; i += 1) {
      const { needsAttestation } = await ingest(open, { 'x-forwarded-for': `198.18.${i}.1` }, signals);
      expect(needsAttestation).toBe(false);
    }
  });

  it('are stored as salted hashes only', async () => {
    await ingest(behind, { 'x-forwarded-for': '198.19.77.5' });
    const rows = JSON.stringify(await execute(behind.dataDir, 'SELECT * FROM network_marks'));
    expect(rows).not.toMatch(/198\.1[89]\./);
    expect(rows).toMatch(/"network":"[A-Za-z0-9_-]{22}"/);
  });
});
