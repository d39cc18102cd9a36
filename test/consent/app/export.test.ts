import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../../support/expect.ts';
import { type Api, bearer, startApi } from './support/api.ts';
import { leafOf, readCheckpoint, readExport, treeHead } from './support/naive-log.ts';

/** A log of several pages. */

const PURPOSES = Array.from({ length: 50 }, (_, i) => ({ id: `purpose-${i}` }));
const ROUNDS = 3;
const PEOPLE = 20;
const SIZE = 2 + ROUNDS * PEOPLE * PURPOSES.length;

let api: Api;
/** Entries beyond SIZE. */
let grown = 0;
beforeAll(async () => {
  api = await startApi({ purposes: PURPOSES });
  const purposes = PURPOSES.map(({ id }) => id);
  for (let round = 0; round < ROUNDS; round += 1) {
    const people = Array.from({ length: PEOPLE }, (_, i) => `person-${round}-${i}`);
    await Promise.all(people.map((principalId) => api.write('grant', { principalId, purposes })));
  }
});
afterAll(() => api.stop());

describe('an export of many pages', () => {
  it('is the whole log, gap-free, as the checkpoint says it', async () => {
    const lines = readExport(await api.get('/v1/ledger/export'));
    expect(lines.map(({ seq }) => seq)).toEqual(Array.from({ length: SIZE + grown }, (_, i) => i));
    const root = treeHead(lines.map(({ entry }) => leafOf(entry))).toString('base64');
    // One is signed a second.
    await vi.waitFor(async () => {
      const head = readCheckpoint((await api.get('/v1/ledger/checkpoint')).text);
      expect(head).toMatchObject({ size: SIZE + grown, root });
    }, SEEN_WITHIN);
  });

  it('while the log grows is gap-free, too', async () => {
    let growing = true;
    const grow = (async () => {
      for (; growing; grown += 1) {
        await api.write('grant', { principalId: `more-${grown}`, purposes: ['purpose-0'] });
      }
    })();
    const lines = readExport(await api.get('/v1/ledger/export'));
    growing = false;
    await grow;
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i));
    expect(lines.length).toBeGreaterThanOrEqual(SIZE);
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
