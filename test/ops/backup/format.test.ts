import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { beginBackup, CHUNK_BYTES, openBackup, SEALED_CHUNK_BYTES } from '../../../src/keys/backup-format.ts';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { decryptBytes, encryptBytes, readHead } from '../../../src/ops/backup-stream-files.ts';
import { tempDir } from '../../support/command.ts';

const masterKey = createMasterKey(Buffer.alloc(32, 7), randomBytes);
const facts = {
  createdAt: '2026-11-20T12:00:00.000Z',
  gpd: '0.1.0',
  schema: 'one.js',
  parts: [{ name: 'gpd.db', bytes: 1 }],
};

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const bytes of source) all.push(bytes);
  return Buffer.concat(all);
}

async function write(content: Buffer, pieceSize = 100_000): Promise<{ file: string; head: number }> {
  const { head, cipher } = beginBackup(masterKey, facts, randomBytes);
  const file = join(tempDir('backup'), 'b');
  const body = await collect(encryptBytes(inPieces(content, pieceSize), cipher));
  writeFileSync(file, Buffer.concat([head, body]));
  return { file, head: head.length };
}

async function read(file: string, key = masterKey): Promise<Buffer> {
  const head = await readHead(file);
  const cipher = openBackup(key, head.header, head.bytes);
  if (!cipher) throw new Error('another key');
  return collect(decryptBytes(file, head, cipher));
}

describe('gpd-backup/1', () => {
  it.each([0, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 17])(
    'gives back %d bytes, however they come in',
    async (size) => {
      const content = randomBytes(size);
      for (const pieceSize of [1 << 16, 5 * CHUNK_BYTES]) {
        const { file, head } = await write(content, pieceSize);
        expect((await read(file)).equals(content)).toBe(true);
        const count = Math.max(1, Math.ceil(size / CHUNK_BYTES));
        expect(readFileSync(file).length).toBe(head + size + 16 * count);
      }
    },
  );

  it('says what is in it without a key, and opens under its own master key alone', async () => {
    const { file } = await write(Buffer.from('x'));
    expect((await readHead(file)).header).toMatchObject({ ...facts, v: 1 });
    const otherKey = createMasterKey(Buffer.alloc(32, 8), randomBytes);
    await expect(read(file, otherKey)).rejects.toThrow('another key');
  });

  it('uses another key for every file', async () => {
    const content = Buffer.alloc(CHUNK_BYTES, 1);
    const bodies = [await write(content), await write(content)].map(({ file, head }) =>
      readFileSync(file).subarray(head).toString('hex'),
    );
    expect(new Set(bodies).size).toBe(2);
  });

  // Three chunks: [0, 1, 2], the last one shorter.
  const chunks = (bytes: Buffer, head: number): Buffer[] =>
    [0, 1, 2].map((i) => bytes.subarray(head + i * SEALED_CHUNK_BYTES, head + (i + 1) * SEALED_CHUNK_BYTES));
  type Change = (bytes: Buffer, head: number) => Buffer;
  const rebuilt = (bytes: Buffer, head: number, order: readonly number[]): Buffer =>
    Buffer.concat([bytes.subarray(0, head), ...order.map((i) => chunks(bytes, head)[i] ?? Buffer.alloc(0))]);
  const CHANGES: Readonly<Record<string, Change>> = {
    'the last chunk gone': (bytes, head) => rebuilt(bytes, head, [0, 1]),
    'a middle chunk gone': (bytes, head) => rebuilt(bytes, head, [0, 2]),
    'the first chunk gone': (bytes, head) => rebuilt(bytes, head, [1, 2]),
    'two chunks swapped': (bytes, head) => rebuilt(bytes, head, [1, 0, 2]),
    'a chunk twice': (bytes, head) => rebuilt(bytes, head, [0, 0, 1, 2]),
    'only the head': (bytes, head) => bytes.subarray(0, head),
    'a byte short': (bytes) => bytes.subarray(0, bytes.length - 1),
    'a byte more': (bytes) => Buffer.concat([bytes, Buffer.alloc(1)]),
    'the head of another file': (bytes, head) =>
      Buffer.concat([beginBackup(masterKey, facts, randomBytes).head, bytes.subarray(head)]),
    'another time in the head': (bytes) =>
      Buffer.from(bytes.toString('latin1').replace('2026-11', '2026-12'), 'latin1'),
  };

  it.each(Object.entries(CHANGES))('refuses %s', async (_name, change) => {
    const { file, head } = await write(randomBytes(2 * CHUNK_BYTES + 100));
    writeFileSync(file, change(readFileSync(file), head));
    await expect(read(file)).rejects.toThrow(/damaged|complete/);
  });

  it('refuses every flipped byte of a small file', async () => {
    const { file } = await write(Buffer.from('some content'));
    const good = readFileSync(file);
    for (const [at, byte] of good.entries()) {
      writeFileSync(file, good.with(at, byte ^ 1));
      await expect(read(file), `byte ${at}`).rejects.toThrow();
    }
  });

  it('refuses what is no backup, whatever its length says', async () => {
    const file = join(tempDir('backup'), 'b');
    const tooLong = Buffer.concat([Buffer.from('gpd-backup/1\n'), Buffer.from([255, 255, 255, 255])]);
    for (const bytes of [Buffer.alloc(0), Buffer.from('SQLite format 3'), tooLong, tooLong.subarray(0, 14)]) {
      writeFileSync(file, bytes);
      await expect(readHead(file)).rejects.toThrow('not a backup made by gpd');
    }
  });
});
