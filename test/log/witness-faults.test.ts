import { randomBytes } from 'node:crypto';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/db/db.ts';
import { migrate } from '../../src/db/migrate.ts';
import { signCheckpoint } from '../../src/ledger/checkpoint.ts';
import { cosignatureOf } from '../../src/ledger/cosignature.ts';
import { appendLeaves, EMPTY_FRONTIER, frontierRoot } from '../../src/ledger/frontier.ts';
import { leafHash } from '../../src/ledger/merkle.ts';
import { makeNoteSigner, parseNote } from '../../src/ledger/note.ts';
import { consistencyProof, type HashReader } from '../../src/ledger/proofs.ts';
import { COSIGNATURE, parseVkey } from '../../src/ledger/vkey.ts';
import { makeWitnessBook, type Refused } from '../../src/log/witness-files.ts';
import { makeWitness, openWitness } from '../../src/log/witness-service.ts';
import { tempDir } from '../support/command.ts';

/** One witness, asked as C2SP tlog-witness says, and what can go wrong between keeping and answering. */

const SECRET = Buffer.alloc(32, 9);
const ORIGIN = 'log.example/ledger/shop';
const NOW = Date.parse('2026-11-23T10:00:00Z');
const signer = makeNoteSigner(ORIGIN, Buffer.alloc(32, 1));

/** A log of twenty entries; `fork` makes it differ from an entry on. */
function makeTree(fork = '', from = 2) {
  const leaves = Array.from({ length: 20 }, (_, i) => leafHash(Buffer.from(`${i}${i >= from ? fork : ''}`)));
  const reader: HashReader = { read: (_level, start, end) => Promise.resolve(leaves.slice(start, end)) };
  const rootOf = (size: number) => frontierRoot(appendLeaves(EMPTY_FRONTIER, leaves.slice(0, size)).frontier);
  const note = (size: number): string => signCheckpoint(size, rootOf(size), signer);
  const prove = async (old: number, size: number): Promise<string[]> =>
    old === 0 || old >= size
      ? []
      : (await consistencyProof(old, size, reader)).map((hash) => hash.toString('base64'));
  return {
    note,
    prove,
    request: async (old: number, size: number) =>
      `${[`old ${old}`, ...(await prove(old, size))].join('\n')}\n\n${note(size)}`,
  };
}

const good = makeTree();
const forked = makeTree(' of a fork');
/** The first three are those of the log. */
const lateFork = makeTree(' of a fork', 3);

let database: Database;
let dataDir: string;
let told: Refused[];

async function makeOne(dir = dataDir, using = database) {
  const keys = {
    serverSecret: SECRET,
    book: makeWitnessBook(dir, SECRET),
    random: randomBytes,
    clock: () => NOW,
  };
  const cosigner = await openWitness(keys, 'witness.example/w');
  const onFork = (_origin: string, refused: Refused): void => void told.push(refused);
  return { ...keys, cosigner, ask: makeWitness({ ...keys, database: using, onFork }, cosigner) };
}

async function addLog({ book }: Awaited<ReturnType<typeof makeOne>>): Promise<void> {
  await book.append(() => ({ v: 1, event: 'log', at: '', origin: ORIGIN, vkey: signer.vkey }));
}

beforeEach(async () => {
  dataDir = tempDir('witness');
  told = [];
  database = await openDatabase({ location: join(dataDir, 'gpd.db'), create: true });
  await migrate(database);
});
afterEach(() => database.close());

describe('add-checkpoint', () => {
  it('is answered as tlog-witness says', async () => {
    const witness = await makeOne();
    expect(await witness.ask(await good.request(0, 3))).toEqual({ status: 404, body: '' });
    await addLog(witness);
    const { ask, cosigner } = witness;
    const first = await ask(await good.request(0, 3));
    expect(first.status).toBe(200);
    const note = parseNote(good.note(3) + first.body);
    const key = parseVkey(cosigner.vkey, COSIGNATURE);
    expect(note && key && cosignatureOf(note, key)?.time).toBe(NOW / 1000);
    // The same again, and on.
    expect((await ask(await good.request(3, 3))).status).toBe(200);
    expect((await ask(await good.request(3, 7))).status).toBe(200);
    for (const [old, size] of [
      [0, 9],
      [3, 9],
      [0, 3],
      [3, 3],
      [8, 9],
    ] as const)
      expect(await ask(await good.request(old, size))).toEqual({ status: 409, body: '7\n' });
    expect((await ask(await good.request(7, 3))).status).toBe(400);
    expect(told).toEqual([]);
  });

  it('refuses what is malformed, and what the log has not signed', async () => {
    const { ask, ...witness } = await makeOne();
    await addLog({ ask, ...witness });
    const whole = await good.request(0, 3);
    for (const body of [
      '',
      'old 0\n',
      whole.replace('old 0', 'old 00'),
      whole.replace('old 0', 'new 0'),
      `\n${whole}`,
    ])
      expect((await ask(body)).status).toBe(400);
    const many = Array.from({ length: 64 }, () => Buffer.alloc(32).toString('base64')).join('\n');
    expect((await ask(`old 3\n${many}\n\n${good.note(7)}`)).status).toBe(400);
    const stranger = signCheckpoint(3, Buffer.alloc(32), makeNoteSigner(ORIGIN, Buffer.alloc(32, 2)));
    expect((await ask(`old 0\n\n${stranger}`)).status).toBe(403);
    expect((await ask(whole.replace('\n3\n', '\n4\n'))).status).toBe(403);
    // Nothing of it was kept: the first true one is still the first.
    expect((await ask(whole)).status).toBe(200);
  });

  it('keeps both notes of a fork, with a proof where it is one, and tells it once', async () => {
    const witness = await makeOne();
    await addLog(witness);
    const { ask } = witness;
    await ask(await good.request(0, 3));
    await ask(await good.request(3, 7));
    const longer = await forked.request(7, 9);
    expect((await ask(longer)).status).toBe(422);
    expect((await ask(longer)).status).toBe(422);
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ proven: true, kept: good.note(7), refused: forked.note(9) });
    // The same size, and an older one, again.
    expect(await ask(await forked.request(7, 7))).toEqual({ status: 409, body: '7\n' });
    expect(await ask(await forked.request(0, 3))).toEqual({ status: 409, body: '7\n' });
    expect(told.slice(1)).toMatchObject([
      { proven: true, kept: good.note(7), refused: forked.note(7) },
      { proven: true, kept: good.note(3), refused: forked.note(3) },
    ]);
    expect((await ask(await good.request(7, 8))).status).toBe(200);
    // The witness knows it after a start as well.
    const again = (await (await makeOne()).book.read()).logs.get(ORIGIN);
    expect(again?.last?.size).toBe(8);
    expect(again?.refused.size).toBe(3);
  });

  it('calls a proof that does not fit no fork: anybody can send one with a checkpoint of the log', async () => {
    const witness = await makeOne();
    await addLog(witness);
    await witness.ask(await good.request(0, 3));
    const nonsense = Buffer.alloc(32, 1).toString('base64');
    for (const size of [7, 9])
      expect((await witness.ask(`old 3\n${nonsense}\n\n${good.note(size)}`)).status).toBe(422);
    expect((await witness.ask(`old 3\n${nonsense}\n\n${good.note(3)}`)).status).toBe(422);
    // A proof of the right shape with one other hash in it, for each of its hashes.
    const proof = await good.prove(3, 7);
    for (const i of proof.keys()) {
      const changed = proof.with(i, nonsense).join('\n');
      expect((await witness.ask(`old 3\n${changed}\n\n${good.note(7)}`)).status).toBe(422);
    }
    expect(told.map(({ proven }) => proven)).toEqual([false]);
    expect((await witness.ask(await good.request(3, 7))).status).toBe(200);
  });
});

describe('a witness', () => {
  it('has kept what it signs: a crash in between costs the log one 409', async () => {
    const broken = {
      ...database,
      transaction: () => Promise.reject(new Error('the power went')),
    } as Database;
    const crashed = await makeOne(dataDir, broken);
    await addLog(crashed);
    await expect(crashed.ask(await good.request(0, 3))).rejects.toThrow('the power went');
    const { ask } = await makeOne();
    expect(await ask(await good.request(0, 3))).toEqual({ status: 409, body: '3\n' });
    expect((await ask(await forked.request(3, 3))).status).toBe(409);
    expect((await ask(await good.request(3, 3))).status).toBe(200);
  });

  it('of two requests at once signs one, or both where one extends the other', async () => {
    const witness = await makeOne();
    await addLog(witness);
    const other = await makeOne();
    const both = [await good.request(0, 3), await forked.request(0, 3)];
    const answers = await Promise.all([witness.ask(both[0] ?? ''), other.ask(both[1] ?? '')]);
    expect(answers.map(({ status }) => status).sort((x, y) => x - y)).toEqual([200, 409]);
  });

  it('signs nothing where witness.log is an older copy of itself', async () => {
    const witness = await makeOne();
    await addLog(witness);
    await witness.ask(await good.request(0, 3));
    const file = join(dataDir, 'witness.log');
    copyFileSync(file, `${file}.old`);
    expect((await witness.ask(await good.request(3, 7))).status).toBe(200);
    copyFileSync(`${file}.old`, file);
    await expect(witness.ask(await lateFork.request(3, 9))).rejects.toThrow();
    await expect((await makeOne()).ask(await lateFork.request(3, 9))).rejects.toMatchObject({
      code: 'witness-rolled-back',
    });
  });

  it('signs nothing by a second copy that goes its own way', async () => {
    const witness = await makeOne();
    await addLog(witness);
    await witness.ask(await good.request(0, 3));
    const kept = join(dataDir, 'witness.log');
    const copies = [6, 7, 9].map((size) => ({ size, dir: tempDir('copy') }));
    for (const { dir } of copies) copyFileSync(kept, join(dir, 'witness.log'));
    expect((await witness.ask(await good.request(3, 7))).status).toBe(200);
    for (const { size, dir } of copies) {
      const second = await makeOne(dir);
      expect(second.cosigner.vkey).toBe(witness.cosigner.vkey);
      await expect(second.ask(await lateFork.request(3, size))).rejects.toThrow(/copies/);
    }
    expect((await witness.ask(await good.request(7, 8))).status).toBe(200);
  });

  it('has another key where witness.log is gone', async () => {
    const { cosigner } = await makeOne();
    const { cosigner: other } = await makeOne(tempDir('other'));
    expect(other.vkey).not.toBe(cosigner.vkey);
  });
});
