import { connect } from 'node:net';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { KID, OTHER } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { verifyTlogProof } from '../../support/log-reader.ts';
import { started } from '../../support/started.ts';
import { bearer, PURPOSE, startApi, type Written } from './support/api.ts';
import { getBytes } from './support/bytes.ts';
import { leafOf, readBundle, readCheckpoint, readExport, treeHead } from './support/naive-log.ts';

/** The tenant's log over HTTP: what it holds, that its parts agree, and its proofs, judged offline. */

/** With two grants of each person there are four full tiles and some more, in three pages of an export. */
const PEOPLE = 130;
const PURPOSES = [PURPOSE, 'ads', 'news', 'polls'];
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

const api = started(() => startApi({ purposes: PURPOSES.slice(1).map((id) => ({ id })) }));
let vkey: string;
let grants: readonly Written[];
beforeAll(async () => {
  vkey = (await api.get('/v1/ledger/vkey')).text.trimEnd();
  const people = Array.from({ length: PEOPLE * 2 }, (_, i) => `person-${i % PEOPLE}`);
  grants = await Promise.all(
    people.map((principalId) => api.write('grant', { principalId, purposes: PURPOSES })),
  );
});

const exported = async () => readExport(await api.get('/v1/ledger/export'));
const proofOf = async (seq: number): Promise<string> => (await api.get(`/v1/consent/proofs/${seq}`)).text;
const tile = async (path: string): Promise<Buffer> =>
  (await getBytes(api.gpd.url, `/v1/ledger/tile/${path}`, bearer(api.keys.secret))).bytes;

it('a new log begins with its genesis and the first purpose', async () => {
  const reply = await api.get('/v1/ledger/export', api.keys.foreign);
  const { text } = await api.get('/v1/ledger/vkey', api.keys.foreign);
  expect(reply.headers['content-type']).toMatch(/^application\/x-ndjson\b/);
  const entries = readExport(reply).map(({ entry }) => JSON.parse(entry) as Record<string, unknown>);
  expect(text).toMatch(/^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+\n$/);
  const [origin] = text.split('+');
  expect(origin).toMatch(new RegExp(`/ledger/${OTHER}$`));
  const time = expect.stringMatching(TIME) as unknown;
  const body = { key: text.trimEnd(), origin };
  expect(entries).toMatchObject([
    { v: 1, type: 'ledger.genesis', time, purpose: null, body },
    { v: 1, type: 'purpose.defined', time, purpose: PURPOSE, body: { id: PURPOSE, gpc: 'opt-out' } },
  ]);
});

describe('grants at once', () => {
  it('take a seq each, without a gap', async () => {
    const seqs = grants.flatMap(({ entries }) => entries.map(({ seq }) => seq)).sort((a, b) => a - b);
    expect(seqs).toEqual(seqs.map((_, i) => i + 2));
    const lines = await exported();
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i));
    expect(lines.map(({ hash }) => hash)).toEqual(lines.map(({ entry }) => leafOf(entry).toString('hex')));
    for (const { seq, hash } of grants) expect(lines[seq]?.hash).toBe(hash);
  });

  it('are entries of one shape, which names nobody and never repeats a commitment', async () => {
    const reply = await api.get('/v1/ledger/export');
    expect(reply.text).not.toContain('person-');
    const commitment = expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) as unknown;
    const commitments = readExport(reply)
      .slice(2, grants.length)
      .flatMap(({ entry }) => {
        const value = JSON.parse(entry) as Record<'subject' | 'body', string>;
        expect(value).toEqual({
          v: 1,
          type: 'consent.granted',
          time: expect.stringMatching(TIME),
          purpose: expect.any(String),
          subject: commitment,
          body: commitment,
        });
        // RFC 8785: keys in their order, no space.
        expect(entry).toBe(JSON.stringify(value, Object.keys(value).sort()));
        return [value.subject, value.body];
      });
    expect(new Set(commitments).size).toBe(commitments.length);
  });

  it('the checkpoint is the root of what is exported', async () => {
    // One is signed a second.
    await vi.waitFor(async () => {
      const leaves = (await exported()).map(({ entry }) => leafOf(entry));
      const root = treeHead(leaves).toString('base64');
      const head = readCheckpoint((await api.get('/v1/ledger/checkpoint')).text);
      expect(head).toEqual({ origin: vkey.split('+')[0], size: leaves.length, root });
    }, SEEN_WITHIN);
  });

  it('tiles and bundles are the same log, full and partial', async () => {
    const lines = await exported();
    const all = lines.map(({ entry }) => leafOf(entry));
    const texts = lines.map(({ entry }) => entry);
    expect((await tile('0/000')).equals(Buffer.concat(all.slice(0, 256)))).toBe(true);
    expect((await tile('0/004.p/5')).equals(Buffer.concat(all.slice(1024, 1029)))).toBe(true);
    expect((await tile('1/000.p/1')).equals(treeHead(all.slice(0, 256)))).toBe(true);
    expect(readBundle(await tile('entries/000'))).toEqual(texts.slice(0, 256));
    expect(readBundle(await tile('entries/004.p/5'))).toEqual(texts.slice(1024, 1029));
    // The address is the same for every tenant: a cache that keeps it would hand one tenant's log to another.
    const { headers } = await api.get('/v1/ledger/tile/0/000');
    expect(headers['content-type']).toBe('application/octet-stream');
    expect(headers['cache-control']).not.toMatch(/public|s-maxage/);
  });

  it.each(['0/009', '0/000.p/0', '0/0', '2/000.p/1', 'entries/009', '0/..%2f..%2fexport', ''])(
    'there is no tile %j',
    async (path) => void expectError(await api.get(`/v1/ledger/tile/${path}`), 'not-found'),
  );
});

describe('an export', () => {
  it('while the log grows is gap-free', async () => {
    let growing = true;
    const grow = (async () => {
      for (let i = 0; growing; i += 1) await api.write('grant', { principalId: `more-${i}` });
    })();
    const lines = await exported();
    growing = false;
    await grow;
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i));
  });

  it('is left by its reader at any moment, without a fault and without a word that is no log line', async () => {
    const headers = Object.entries({ host: 'x', ...bearer(api.keys.secret) }).map(([k, v]) => `${k}: ${v}`);
    const request = `GET /v1/ledger/export HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
    const leave = (ms: number): Promise<void> =>
      new Promise((resolve, reject) => {
        const socket = connect(api.gpd.port, '127.0.0.1');
        socket.once('error', reject);
        // Not one byte is taken, so that the rest has to wait.
        socket.pause();
        socket.write(request, () => setTimeout(() => socket.destroy(), ms));
        socket.once('close', () => resolve());
      });
    for (let ms = 0; ms < 30; ms += 1) await leave(ms);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await api.get('/v1/ledger/vkey')).status).toBe(200);
    const lines = api.gpd.logs().split('\n');
    expect(lines.filter((line) => /^[^{]|"fault"/.test(line))).toEqual([]);
  });
});

describe('a proof', () => {
  it('of every edge of a tile verifies, holds that entry, and is text that nobody keeps', async () => {
    const lines = await exported();
    for (const seq of [0, 1, 2, 255, 256, 257, 511, 512, 1023, 1024, lines.length - 1]) {
      const result = verifyTlogProof(await proofOf(seq), vkey);
      if (!result.ok) expect.fail(`${seq} does not verify`);
      expect(result.index).toBe(seq);
      expect(result.entry.toString()).toBe(lines[seq]?.entry);
      expect(result.leafHash.toString('hex')).toBe(lines[seq]?.hash);
    }
    const { headers } = await api.get('/v1/consent/proofs/0');
    expect(headers['content-type']).toMatch(/^text\/plain\b/);
    expect(headers['cache-control']).toBe('no-store');
  });

  it('is what a decision names, at once for an entry that no checkpoint covers yet', async () => {
    for (let i = 0; i < 3; i += 1) {
      const { seq, hash } = await api.write('withdraw', { principalId: 'at-once' });
      const { proof } = await api.check('at-once');
      expect(proof).toEqual({ seq, hash });
      const result = verifyTlogProof(await proofOf(proof.seq), vkey);
      expect(result.ok && [result.index, result.leafHash.toString('hex')]).toEqual([seq, hash]);
    }
  });

  it.each(['999999', '-1', '01', '1.0', '1e1', 'x', '9007199254740993', '%00', '1%2f'])(
    'there is none of %s',
    async (seq) => void expectError(await api.get(`/v1/consent/proofs/${seq}`), 'not-found'),
  );
});

describe('ledger.public', () => {
  const open = (kid: string, part: string): Promise<Reply> => ask(api.gpd.url, `/ledger/${kid}/${part}`);
  const PARTS = ['checkpoint', 'vkey', 'tile/0/000.p/1', 'tile/entries/000.p/1', 'export'];

  it('is off: nobody sees whether there is such a log', async () => {
    for (const part of PARTS) {
      const [there, unknown] = [await open(KID, part), await open('nobody', part)];
      expectError(there, 'not-found');
      expect([unknown.status, unknown.text]).toEqual([there.status, there.text]);
    }
  });

  it('opens the log of one tenant, to every origin, and closes it again', async () => {
    await api.gpd.json(['tenants', 'set', KID, 'ledger.public=true']);
    await vi.waitFor(async () => expect((await open(KID, 'vkey')).status).toBe(200), SEEN_WITHIN);
    for (const part of PARTS) {
      const reply = await open(KID, part);
      expect(reply.status).toBe(200);
      expect(reply.headers['access-control-allow-origin']).toBe('*');
      if (part !== 'checkpoint') expect(reply.text).toBe((await api.get(`/v1/ledger/${part}`)).text);
      expectError(await open(OTHER, part), 'not-found');
    }
    expect((await open(KID, 'tile/0/000')).headers['cache-control']).toMatch(/^public, max-age=\d{5,}/);
    for (const part of ['proofs/0', 'tile/0/999', 'state', '']) {
      expectError(await open(KID, part), 'not-found');
    }
    await api.gpd.json(['tenants', 'set', KID, 'ledger.public=false']);
    await vi.waitFor(async () => expectError(await open(KID, 'vkey'), 'not-found'), SEEN_WITHIN);
  });
});
