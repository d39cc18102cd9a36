import { afterEach, describe, expect, it, vi } from 'vitest';
import { execute } from '../../support/database.ts';
import { postJson } from '../../support/http.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';
import { type Api, apiOf, bearer, PURPOSE, startApiProcess, type Written } from '../app/support/api.ts';
import { leafOf, readCheckpoint, readExport, treeHead } from '../app/support/naive-log.ts';

const WRITERS = 16;
/** What has been acknowledged when the server is struck, in the middle of a write. */
const STORM = 20 * WRITERS;

const GATHERS = { timeout: 20_000, interval: 20 };

interface Acknowledged {
  readonly principalId: string;
  readonly action: 'grant' | 'withdraw';
  readonly written: Written;
}

let api: Api<GpdProcess>;
afterEach(() => api.stop());

/** Grants, and withdraws every third, each for a person of its own; what was answered 201, until the server is gone. */
async function storm(acknowledged: Acknowledged[], over: () => boolean): Promise<void> {
  const headers = bearer(api.keys.secret);
  const write = async (action: Acknowledged['action'], principalId: string): Promise<boolean> => {
    const body = { principalId, purposes: [PURPOSE] };
    const reply = await postJson(api.gpd.url, `/v1/consent/${action}`, body, headers).catch(() => null);
    if (reply?.status !== 201) return false;
    acknowledged.push({ principalId, action, written: reply.json() as Written });
    return true;
  };
  const writer = async (name: number): Promise<void> => {
    for (let i = 0; !over(); i += 1) {
      const principalId = `storm-${name}-${i}`;
      const granted = await write('grant', principalId);
      if (granted && i % 3 === 0) await write('withdraw', principalId);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, name) => writer(name)));
}

describe('kill -9 during a storm of grants', () => {
  it('every acknowledged entry is there, gap-free, and decides', async () => {
    api = await startApiProcess();
    let killed = false;
    const acknowledged: Acknowledged[] = [];
    const storming = storm(acknowledged, () => killed);
    await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(STORM), GATHERS);
    killed = true;
    await api.gpd.kill9();
    await storming;

    api = apiOf(await startProcess({ dataDir: api.gpd.dataDir }), api.keys);
    const lines = readExport(await api.get('/v1/ledger/export'));
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i));
    const leaves = lines.map(({ entry }) => leafOf(entry));
    expect(lines.map(({ hash }) => hash)).toEqual(leaves.map((leaf) => leaf.toString('hex')));
    for (const { written } of acknowledged) expect(lines[written.seq]?.hash).toBe(written.hash);
    const head = readCheckpoint((await api.get('/v1/ledger/checkpoint')).text);
    expect(head).toMatchObject({ size: lines.length, root: treeHead(leaves).toString('base64') });

    const [openings] = await execute(api.gpd.dataDir, 'SELECT count(*) AS n FROM consent_openings');
    expect(openings).toEqual({ n: lines.length - 2 });

    const last = new Map(acknowledged.map((write) => [write.principalId, write]));
    // A withdrawal that was under way may have been written without its answer.
    const sample = [...last.values()].filter(({ principalId, action }) => {
      return action === 'withdraw' || Number(principalId.split('-')[2]) % 3 !== 0;
    });
    for (const { principalId, action, written } of sample.slice(-60)) {
      expect(await api.check(principalId)).toMatchObject({
        reason: action === 'grant' ? 'granted' : 'withdrawn',
        proof: { seq: written.seq, hash: written.hash },
      });
    }
    expect(await api.write('grant', { principalId: 'after' })).toMatchObject({ seq: lines.length });
  });

  it('a stop by SIGTERM answers what it took, and loses nothing of it', async () => {
    api = await startApiProcess();
    let stopped = false;
    const acknowledged: Acknowledged[] = [];
    const storming = storm(acknowledged, () => stopped);
    await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(STORM / 2), GATHERS);
    stopped = true;
    expect(await api.stop()).toMatchObject({ code: 0 });
    await storming;
    api = apiOf(await startProcess({ dataDir: api.gpd.dataDir }), api.keys);
    const lines = readExport(await api.get('/v1/ledger/export'));
    for (const { written } of acknowledged) expect(lines[written.seq]?.hash).toBe(written.hash);
    expect(lines).toHaveLength(acknowledged.length + 2);
  });
});
