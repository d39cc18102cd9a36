import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signCheckpoint } from '../../src/ledger/checkpoint.ts';
import { leafHash } from '../../src/ledger/merkle.ts';
import { makeNoteSigner } from '../../src/ledger/note.ts';
import { inclusionProof, rootAt } from '../../src/ledger/proofs.ts';
import { formatTlogProof, parseTlogProof, verifyTlogProof } from '../../src/ledger/tlog-proof.ts';
import { describeWithTool } from '../support/tools.ts';
import { makeLog } from './support.ts';

const signer = makeNoteSigner('consent.example/ledger/shop', Buffer.alloc(32, 3));
const entries = Array.from({ length: 700 }, (_, i) => Buffer.from(`{"n":${i}}`));
const { reader } = makeLog(entries.map(leafHash));

async function makeProof(index: number, size: number, by = signer): Promise<string> {
  const hashes = await inclusionProof(index, size, reader);
  const checkpoint = signCheckpoint(size, await rootAt(size, reader), by);
  return formatTlogProof({ entry: entries[index]!, index, hashes, checkpoint });
}

function why(text: string, vkey = signer.vkey): string {
  const result = verifyTlogProof(text, vkey);
  return result.ok ? 'ok' : result.why;
}

describe('a tlog-proof', () => {
  it('verifies with the key of the log, at the first and the last entry too', async () => {
    for (const [index, size] of [
      [0, 1],
      [0, 700],
      [255, 256],
      [256, 700],
      [699, 700],
    ] as const) {
      expect(verifyTlogProof(await makeProof(index, size), signer.vkey)).toEqual({
        ok: true,
        entry: entries[index],
        index,
        leafHash: leafHash(entries[index]!),
        origin: signer.name,
        size,
        root: await rootAt(size, reader),
      });
    }
  });

  it('does not verify with any one character changed', async () => {
    const text = await makeProof(300, 700);
    for (let at = 0; at < text.length; at += 1) {
      for (const other of ['A', '1'].filter((each) => each !== text[at])) {
        const changed = `${text.slice(0, at)}${other}${text.slice(at + 1)}`;
        expect(why(changed), `character ${at} as ${other}`).not.toBe('ok');
      }
      expect(why(`${text.slice(0, at)}${text.slice(at + 1)}`), `without character ${at}`).not.toBe('ok');
    }
  });

  it('does not verify with a part of another proof', async () => {
    const proof = parseTlogProof(await makeProof(300, 700)) ?? expect.fail('not a proof');
    const other = parseTlogProof(await makeProof(301, 600)) ?? expect.fail('not a proof');
    for (const part of ['entry', 'index', 'hashes', 'checkpoint'] as const) {
      expect(why(formatTlogProof({ ...proof, [part]: other[part] })), part).toBe('not-included');
    }
  });

  it('says why', async () => {
    const text = await makeProof(300, 700);
    const namesake = makeNoteSigner(signer.name, Buffer.alloc(32, 4));
    const other = makeNoteSigner('consent.example/ledger/other', Buffer.alloc(32, 3));
    expect(why(text, 'not a key')).toBe('malformed-key');
    expect(why(text, namesake.vkey)).toBe('not-signed');
    expect(why(await makeProof(300, 700, other))).toBe('not-signed');
    expect(why(text.trimEnd())).toBe('malformed-checkpoint');
    expect(why(text.replace('index 300', 'index 301'))).toBe('not-included');
    expect(why(text.replace('index 300', 'index 700'))).toBe('not-included');
  });

  it('is malformed with any line of its head missing or badly written', async () => {
    const text = await makeProof(300, 700);
    const [first = '', extra = '', position = ''] = text.split('\n');
    const bad = [
      '',
      text.replace('@v1', '@v2'),
      text.slice(first.length + 1),
      text.replace(`${extra}\n`, ''),
      text.replace(`${position}\n`, ''),
      text.replace(extra, extra.replace('extra ', 'extra  ')),
      text.replace(extra, `${extra}=`),
      text.replace(extra, `${extra}\r`),
      text.replace(position, 'index 0300'),
      text.replace(position, 'index -1'),
      text.replace(position, 'index 3e2'),
      text.replace(position, `${position}\nAAAA`),
      text.replaceAll('\n\n', '\n'),
    ];
    for (const each of bad) expect(why(each), each.slice(0, 120)).toBe('malformed-proof');
  });
});

const verifier = fileURLToPath(new URL('../vectors/ledger/verify.py', import.meta.url));

function missingVerifier(): string | null {
  const missing = (['python3 --version', 'openssl version'] as const).filter((command) => {
    const [tool = '', ...args] = command.split(' ');
    return spawnSync(tool, args).status !== 0;
  });
  return missing.length === 0
    ? null
    : `needs python3 and openssl 3 in the PATH (failed: ${missing.join(', ')})`;
}

describeWithTool('the verifier in Python and openssl', missingVerifier(), () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tlog-proof-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const accepts = (proof: string): { readonly status: number | null; readonly output: string } => {
    const [proofFile, vkeyFile] = [join(folder, 'proof'), join(folder, 'vkey')];
    writeFileSync(proofFile, proof);
    writeFileSync(vkeyFile, `${signer.vkey}\n`);
    const env = { ...process.env, TMPDIR: folder, PYTHONIOENCODING: 'utf-8' };
    const { status, stdout } = spawnSync('python3', [verifier, proofFile, vkeyFile], {
      env,
      encoding: 'utf8',
    });
    return { status, output: stdout };
  };

  it('accepts proofs made here', async () => {
    for (const [index, size] of [
      [0, 1],
      [256, 700],
      [699, 700],
    ] as const) {
      const { status, output } = accepts(await makeProof(index, size));
      expect(status).toBe(0);
      expect(output).toContain(
        `OK entry ${index} of ${size} leaf ${leafHash(entries[index]!).toString('hex')}`,
      );
      expect(output).toContain(`{"n":${index}}`);
    }
  });

  it('refuses one with another entry, index, hash, size or signature', async () => {
    const text = await makeProof(256, 700);
    const entry = Buffer.from('{"n":257}').toString('base64');
    const hash = text.split('\n')[3] ?? '';
    const bad = [
      text.replace(/extra .*/, `extra ${entry}`),
      text.replace('index 256', 'index 257'),
      text.replace(hash, Buffer.alloc(32).toString('base64')),
      text.replace('\n700\n', '\n701\n'),
      text.replace(/.{10}\n$/, 'AAAAAAAAAA\n'),
    ];
    for (const each of bad) {
      expect(each).not.toBe(text);
      expect(accepts(each).status, each.slice(0, 80)).not.toBe(0);
    }
  });
});
