import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { dumpDatabase, execute } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { desktopChrome } from '../support/samples.ts';
import { createNonce, makePlaintext, seal, sealUnder } from '../support/seal.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** No raw signal and no secret is ever stored or logged (contract 3.4): every value is marked, then looked for. */

const markers = new Set<string>();

/** The log names a refused kid, so that an operator can find the page that sends it. */
const UNKNOWN_KID = 'nobody';

function mark(): string {
  const marker = `mark${randomBytes(9).toString('hex')}`;
  markers.add(marker);
  return marker;
}

function markNumber(): number {
  const value = 100_000_000_000_000 + randomBytes(6).readUIntBE(0, 6);
  markers.add(String(value));
  return value;
}

/** @returns the same shape with every text and number replaced, except words that the schema fixes */
function marked(value: unknown, name = ''): unknown {
  if (name === 'pointer' || name === 'fonts') return value;
  if (typeof value === 'string') return mark();
  if (typeof value === 'number') return markNumber();
  if (Array.isArray(value)) return value.length === 0 ? [mark()] : value.map((item) => marked(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, marked(item, key)]));
}

let gpd: Gpd;
let requestId = '';
let commandLine = '';
const plaintexts: string[] = [];
const secrets: string[] = [];

function markedPlaintext(): string {
  const consent = { purposes: ['device-identification'], gpc: false, version: 3, issuedAt: Date.now() };
  const nonce = createNonce(32);
  secrets.push(nonce);
  const principalId = mark();
  const signals = marked({ ...desktopChrome(), later: { field: 'x' } }) as Record<string, unknown>;
  const text = JSON.stringify(makePlaintext({ nonce, signals, consent: { ...consent, principalId } }));
  plaintexts.push(text);
  return text;
}

function markedHeaders(): Record<string, string> {
  return {
    origin: ORIGIN,
    'user-agent': mark(),
    'accept-language': mark(),
    'sec-ch-ua': mark(),
    'sec-ch-ua-platform': mark(),
    referer: `https://${mark()}.example/`,
    cookie: `gp_session=${mark()}`,
    'x-request-id': mark(),
    'x-forwarded-for': '203.0.113.77',
  };
}

async function traffic(): Promise<void> {
  const acme = gpd.targets[0]!;
  const ok = seal(acme, markedPlaintext());
  for (const reason of ['ok', 'replay'] as const) {
    const reply = await post(gpd.url, ok, markedHeaders());
    const { transparencyToken } = expectCore(reply, reason);
    if (transparencyToken !== undefined) secrets.push(transparencyToken);
    secrets.push(String(reply.headers['set-cookie']?.[0]?.slice(11, 54)));
  }
  await post(gpd.url, ok, { ...markedHeaders(), 'sec-gpc': '1' });
  await post(gpd.url, seal({ ...acme, kid: UNKNOWN_KID }, markedPlaintext()), markedHeaders());
  await post(gpd.url, sealUnder(UNKNOWN_KID, Buffer.alloc(32), markedPlaintext()), markedHeaders());
  await post(gpd.url, seal(acme, markedPlaintext().replace('{', `{"${mark()}":1,`)), markedHeaders());
  await post(gpd.url, `{"${mark()}":"${mark()}`, markedHeaders());
  const secret = `gpd_sk_${mark()}`;
  await ask(gpd.url, `/v1/decisions/${mark()}?q=${mark()}`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  await ask(gpd.url, `/_fp/pubkey?kid=${UNKNOWN_KID}`, { headers: markedHeaders() });
  await ask(gpd.url, `/${mark()}`, { headers: markedHeaders() });
}

beforeAll(async () => {
  gpd = await startGpd({ settings: { GPD_LOG_LEVEL: 'trace' } });
  secrets.push('203.0.113.77');
  const key = await addApiKey(gpd);
  const shared = await gpd.json<{ key: string }>(['keys', 'symmetric', KID]);
  secrets.push(key, shared.key, readFileSync(join(gpd.dataDir, 'master.key'), 'utf8').trim());
  await traffic();
  requestId = expectCore(await post(gpd.url, seal(gpd.targets[0]!, markedPlaintext())), 'ok').requestId;

  // An operator may send the same bundles through the command line.
  const file = join(tempDir('replay'), 'bundles.ndjson');
  writeFileSync(file, plaintexts.map((text) => JSON.stringify(seal(gpd.targets[0]!, text))).join('\n'));
  const replayed = await gpd.cli(['replay', file]);
  expect(replayed.code).toBe(0);
  commandLine = replayed.stdout + replayed.stderr;
});
afterAll(() => gpd.stop());

/** Every byte of the data directory but the master key itself. */
function storedBytes(): Buffer {
  const names = readdirSync(gpd.dataDir).filter((name) => name !== 'master.key');
  expect(names).toContain('gpd.db');
  return Buffer.concat(names.map((name) => readFileSync(join(gpd.dataDir, name))));
}

const found = (text: Buffer | string): string[] =>
  [...markers, ...secrets].filter((marker) => text.includes(marker));

describe('after traffic in which every value was marked', () => {
  it('the marks can be found at all: they are in what was sealed, and a request id is in the database', () => {
    expect(markers.size).toBeGreaterThan(300);
    expect(found(plaintexts[0] ?? '').length).toBeGreaterThan(60);
    expect(storedBytes().includes(requestId)).toBe(true);
  });

  it('none is in a file of the data directory, before a checkpoint and after one', async () => {
    expect(readdirSync(gpd.dataDir).some((name) => name.endsWith('-wal'))).toBe(true);
    expect(found(storedBytes())).toEqual([]);
    await execute(gpd.dataDir, 'PRAGMA wal_checkpoint(TRUNCATE)');
    expect(found(storedBytes())).toEqual([]);
    expect(found(JSON.stringify(await dumpDatabase(gpd.dataDir)))).toEqual([]);
  });

  it('none is in what the command line printed, nor in the log, not even when the database fails', async () => {
    expect(commandLine).toContain('bundles');
    expect(found(commandLine)).toEqual([]);
    await execute(gpd.dataDir, 'ALTER TABLE decisions RENAME TO hidden');
    expectCore(await post(gpd.url, seal(gpd.targets[0]!, markedPlaintext()), markedHeaders()), 'unknown');
    await execute(gpd.dataDir, 'ALTER TABLE hidden RENAME TO decisions');
    expect(gpd.logs()).toMatch(/"event":"fault"/);
    expect(found(gpd.logs())).toEqual([]);
  });
});
