import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inclusionProof, leafHash, rootAt } from '../../../src/ledger/merkle.ts';
import { createNoteSigner, signCheckpoint } from '../../../src/ledger/note.ts';
import { formatTlogProof } from '../../../src/ledger/tiles.ts';
import { describeWithTool } from '../../support/tools.ts';
import { createLog } from '../support.ts';

/** docs/verify.py, which ships with every package: Python and openssl, and nothing of gpd. */

const verifier = fileURLToPath(new URL('../../../docs/verify.py', import.meta.url));
const signer = createNoteSigner('consent.example/ledger/shop', Buffer.alloc(32, 3));
const other = createNoteSigner('consent.example/ledger/shop', Buffer.alloc(32, 4));
const entries = Array.from({ length: 700 }, (_, i) => Buffer.from(`{"n":${i}}`));
const { reader } = createLog(entries.map(leafHash));

const checkpointOver = async (size: number): Promise<string> =>
  signCheckpoint(size, await rootAt(size, reader), signer);

async function createProof(index: number, size: number): Promise<string> {
  const hashes = await inclusionProof(index, size, reader);
  return formatTlogProof({ entry: entries[index]!, index, hashes, checkpoint: await checkpointOver(size) });
}

/** `gpd consent export` writes these lines. */
const createExport = (size: number): string[] =>
  entries.slice(0, size).map((entry, seq) => {
    return JSON.stringify({ seq, hash: leafHash(entry).toString('hex'), entry: entry.toString() });
  });

function missingVerifier(): string | null {
  const missing = (['python3 --version', 'openssl version'] as const).filter((command) => {
    const [tool = '', ...args] = command.split(' ');
    return spawnSync(tool, args).status !== 0;
  });
  return missing.length === 0
    ? null
    : `needs python3 and openssl 3 in the PATH (failed: ${missing.join(', ')})`;
}

describeWithTool('docs/verify.py', missingVerifier(), () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'verify-py-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function verify(...texts: readonly string[]) {
    const files = texts.map((_text, i) => join(folder, String(i)));
    for (const [i, file] of files.entries()) writeFileSync(file, texts[i] ?? '');
    const env = { ...process.env, TMPDIR: folder, PYTHONIOENCODING: 'utf-8' };
    const { status, stdout, stderr } = spawnSync('python3', [verifier, ...files], { env, encoding: 'utf8' });
    return { status, stdout, stderr };
  }
  const vkey = `${signer.vkey}\n`;

  it('accepts proofs made here', async () => {
    for (const [index, size] of [
      [0, 1],
      [256, 700],
      [699, 700],
    ] as const) {
      const { status, stdout, stderr } = verify(await createProof(index, size), vkey);
      expect([status, stderr]).toEqual([0, '']);
      const leaf = leafHash(entries[index]!).toString('hex');
      expect(stdout).toBe(`OK entry ${index} of ${size} leaf ${leaf}\n{"n":${index}}\n`);
    }
  });

  const change = (from: string | RegExp, to: string) => (text: string) => text.replace(from, to);
  const entry = Buffer.from('{"n":257}').toString('base64');
  it.each([
    ['another entry', 'inclusion', change(/extra .*/, `extra ${entry}`)],
    ['another index', 'inclusion', change('index 256', 'index 257')],
    ['an index past the end', 'inclusion', change('index 256', 'index 700')],
    [
      'another hash of the path',
      'inclusion',
      change(/(index 256\n).*/, `$1${Buffer.alloc(32).toString('base64')}`),
    ],
    ['a hash less', 'inclusion', change(/(index 256\n).*\n/, '$1')],
    ['another size', 'signature', change('\n700\n', '\n701\n')],
    ['another signature', 'signature', change(/.{10}\n$/, 'AAAAAAAAAA\n')],
    ['no signature', 'signature', change(/\n\u2014 .*\n$/, '\n')],
    ['the name of another log', 'origin', change('\n\nconsent.example/', '\n\nelsewhere.example/')],
    ['half of it', 'proof', (text: string) => text.slice(0, 60)],
    ['an index in words', 'proof', change('index 256', 'index 3e2')],
    ['nothing', 'proof', () => ''],
  ])('refuses a proof with %s, and names the check: %s', async (_name, check, damage) => {
    const good = await createProof(256, 700);
    const bad = damage(good);
    expect(bad).not.toBe(good);
    const { status, stdout, stderr } = verify(bad, vkey);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^FAILED ${check}: .+\\n$`));
  });

  it('refuses another key, and one whose parts do not belong together', async () => {
    const proof = await createProof(256, 700);
    const [name, , key] = signer.vkey.split('+');
    const otherId = other.vkey.split('+')[1];
    expect(verify(proof, other.vkey)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^FAILED signature:/),
    });
    const mixed = `${name}+${otherId}+${key}`;
    expect(verify(proof, mixed)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^FAILED key id:/),
    });
    expect(verify(proof, 'a key')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^FAILED verifier key:/),
    });
  });

  it('recomputes an exported log, at any size', async () => {
    for (const size of [1, 2, 3, 255, 256, 700]) {
      const log = `${createExport(size).join('\n')}\n`;
      const { status, stdout, stderr } = verify(log, await checkpointOver(size), vkey);
      expect([status, stderr]).toEqual([0, '']);
      const root = (await rootAt(size, reader)).toString('base64');
      expect(stdout).toBe(`OK log of ${size} entries, root ${root}\n`);
    }
  });

  const at = (line: number, text: (line: string) => string) => (lines: readonly string[]) =>
    lines.map((each, i) => (i === line ? text(each) : each));
  const forged = leafHash(Buffer.from('{"n":8}')).toString('hex');
  it.each([
    ['a changed entry', 'entry', at(5, change('{\\"n\\":5}', '{\\"n\\":8}'))],
    [
      'a changed entry and its hash',
      'root',
      at(5, () => JSON.stringify({ seq: 5, hash: forged, entry: '{"n":8}' })),
    ],
    ['one entry less at the end', 'size', (lines: readonly string[]) => lines.slice(0, -1)],
    ['one entry less inside', 'log', (lines: readonly string[]) => lines.filter((_, i) => i !== 7)],
    ['a torn line', 'log', at(6, (line) => line.slice(0, 20))],
    ['nothing', 'log', () => []],
  ])('refuses a log with %s, and names the check: %s', async (_name, check, damage) => {
    const lines = createExport(20);
    const bad = damage(lines);
    expect(bad).not.toEqual(lines);
    const { status, stderr } = verify(`${bad.join('\n')}\n`, await checkpointOver(20), vkey);
    expect(status).toBe(1);
    expect(stderr).toMatch(new RegExp(`^FAILED ${check}: .+\\n$`));
  });

  it('ends with 2 where nothing can be checked', () => {
    expect(spawnSync('python3', [verifier]).status).toBe(2);
    expect(spawnSync('python3', [verifier, join(folder, 'none'), join(folder, 'none')]).status).toBe(2);
    const python = spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' });
    const without = spawnSync(python.stdout.trim(), [verifier, '0', '1'], {
      cwd: folder,
      env: { PATH: folder },
    });
    expect(without.status).toBe(2);
    expect(without.stderr.toString()).toMatch(/^openssl is not in the PATH/);
  });
});
