import { describe, expect, it } from 'vitest';
import { inclusionProof, leafHash, rootAt } from '../../src/ledger/merkle.ts';
import { makeNoteSigner, signCheckpoint } from '../../src/ledger/note.ts';
import { formatTlogProof } from '../../src/ledger/tiles.ts';
import { parseTlogProof, verifyTlogProof } from '../support/log-reader.ts';
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
