import { describe, expect, it } from 'vitest';
import {
  type Checkpoint,
  createNoteSigner,
  createVerifierKey,
  formatCheckpoint,
  formatVkey,
  logOrigin,
  parseCheckpoint,
  parseNote,
  parseVkey,
  signCheckpoint,
  signNote,
  type VerifierKey,
  verifyCheckpoint,
  verifyNote,
} from '../../src/ledger/note.ts';
import { createLeaves, flipBit } from './support.ts';

const ORIGIN = 'consent.example/ledger/shop';
const signer = createNoteSigner(ORIGIN, Buffer.alloc(32, 3));
const witness = createNoteSigner('witness.example/w1', Buffer.alloc(32, 4));
const keyOf = (vkey: string): VerifierKey => parseVkey(vkey) ?? expect.fail(vkey);
const root = createLeaves(1)[0]!;
const checkpoint: Checkpoint = { origin: ORIGIN, size: 12, root };
const note = signCheckpoint(12, root, signer);
const lineOf = (signed: string): string => signed.slice(signed.lastIndexOf('\n\n') + 2);

describe('a verifier key', () => {
  it('is read back as it was written', () => {
    expect(signer.vkey).toMatch(/^consent\.example\/ledger\/shop\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$/);
    expect(formatVkey(keyOf(signer.vkey))).toBe(signer.vkey);
  });

  it('may have pluses in its base64 and in its base64 only', () => {
    const withPlus = Array.from(
      { length: 200 },
      (_, i) => createNoteSigner('a', Buffer.alloc(32, i)).vkey,
    ).filter((vkey) => vkey.split('+').length > 3);
    expect(withPlus.length).toBeGreaterThan(10);
    for (const vkey of withPlus) expect(formatVkey(keyOf(vkey))).toBe(vkey);
  });

  it('is the public key of RFC 8032 section 7.1 test 1', () => {
    const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex');
    expect(keyOf(createNoteSigner('a', seed).vkey).publicKey.toString('hex')).toBe(
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    );
  });

  it('is null with any part wrong', () => {
    const [name = '', id = '', key = ''] = signer.vkey.split(/\+(.{8})\+/);
    const bytes = Buffer.from(key, 'base64');
    const other = (byte: number): string =>
      Buffer.concat([Buffer.from([byte]), bytes.subarray(1)]).toString('base64');
    const bad = [
      '',
      name,
      `other+${id}+${key}`,
      `+${id}+${key}`,
      `${name}+${id.toUpperCase()}+${key}`,
      `${name}+00000000+${key}`,
      `${name}+${id}+${other(2)}`,
      `${name}+${id}+${bytes.subarray(1).toString('base64')}`,
      `${name}+${id}+${bytes.toString('base64url')}=`,
      `${name}+${id}+${flipBit(bytes, 20).toString('base64')}`,
      `${signer.vkey}\n`,
    ];
    for (const text of bad) expect(parseVkey(text), text).toBeNull();
  });

  it('has a name without spaces, pluses and control characters', () => {
    for (const name of ['', 'a b', 'a+b', 'a\u00a0b', 'a\u2003b', 'a\u0085b', 'a\nb', 'a\u0000', 'a\ud800']) {
      expect(() => createVerifierKey(name, Buffer.alloc(32)), JSON.stringify(name)).toThrow(TypeError);
      expect(() => createNoteSigner(name, Buffer.alloc(32)), JSON.stringify(name)).toThrow(TypeError);
    }
    expect(() => createVerifierKey('a', Buffer.alloc(31))).toThrow(TypeError);
    expect(() => createNoteSigner('a', Buffer.alloc(64))).toThrow(TypeError);
  });
});

describe('a signed note', () => {
  const verifies = (text: string, vkey = signer.vkey): boolean => {
    const parsed = parseNote(text);
    return parsed !== null && verifyNote(parsed, keyOf(vkey));
  };

  it('is the text, an empty line and one line a signature', () => {
    const signed = signNote('one\n\ntwo\n', signer);
    expect(signed).toMatch(/^one\n\ntwo\n\n— consent\.example\/ledger\/shop [A-Za-z0-9+/]+=*\n$/);
    expect(parseNote(signed)?.text).toBe('one\n\ntwo\n');
    expect(verifies(signed)).toBe(true);
  });

  it('may carry the signatures of others, before and after', () => {
    const text = formatCheckpoint(checkpoint);
    const foreign = witness.sign(text);
    for (const lines of [foreign + signer.sign(text), signer.sign(text) + foreign]) {
      expect(verifies(`${text}\n${lines}`)).toBe(true);
      expect(verifies(`${text}\n${lines}`, witness.vkey)).toBe(true);
    }
    expect(verifies(`${text}\n${signer.sign(text)}${foreign.repeat(15)}`)).toBe(true);
  });

  it('does not verify without a signature of the key, nor with one that is wrong', () => {
    const text = formatCheckpoint(checkpoint);
    expect(verifies(`${text}\n${witness.sign(text)}`)).toBe(false);
    const wrongSignature = signer.sign('another text\n');
    expect(verifies(`${text}\n${wrongSignature}`)).toBe(false);
    expect(verifies(`${text}\n${signer.sign(text)}${wrongSignature}`)).toBe(false);
    const sameName = createNoteSigner(ORIGIN, Buffer.alloc(32, 5));
    expect(verifies(`${text}\n${sameName.sign(text)}`)).toBe(false);
    expect(verifies(`${text}\n${sameName.sign(text)}${signer.sign(text)}`)).toBe(true);
  });

  it('takes a line under another name for the signature of another key, though the key id is its own', () => {
    const text = formatCheckpoint(checkpoint);
    const [ownSignature, wrongSignature] = [signer.sign(text), signer.sign('another text\n')];
    const renamed = (line: string): string => line.replace(ORIGIN, 'elsewhere.example/log');
    expect(verifies(`${text}\n${renamed(ownSignature)}`)).toBe(false);
    expect(verifies(`${text}\n${ownSignature}${renamed(wrongSignature)}`)).toBe(true);
  });

  it('does not verify with any bit of the signature or the text changed', () => {
    const { text } = parseNote(note) ?? expect.fail('not a note');
    const [, name = '', base64 = ''] = lineOf(note).trimEnd().split(' ');
    const signature = Buffer.from(base64, 'base64');
    for (let bit = 0; bit < signature.length * 8; bit += 1) {
      const line = `— ${name} ${flipBit(signature, bit).toString('base64')}\n`;
      expect(verifies(`${text}\n${line}`), `bit ${bit}`).toBe(false);
    }
    for (let at = 0; at < text.length - 1; at += 1) {
      const changed = `${text.slice(0, at)}${text[at] === 'x' ? 'y' : 'x'}${text.slice(at + 1)}`;
      expect(verifies(`${changed}\n${lineOf(note)}`), `character ${at}`).toBe(false);
    }
  });

  it('is not read from anything else', () => {
    const line = lineOf(note);
    const text = 'text\n';
    const bad = [
      '',
      text,
      `\n${line}`,
      `${text}${line}`,
      `${text}\n`,
      `${text}\n${line.trimEnd()}`,
      `${text}\n${line}\n`,
      `${text}\n${line.replace('—', '-')}`,
      `${text}\n${line.replace(/ (\S+)\n$/, '  $1\n')}`,
      `${text}\n${line.replace(/=*\n$/, ' \n')}`,
      `${text}\n— a AAAA\n`,
      `${text}\n— a AAAAAAB=\n`,
      `${text}\n— a+b AAAAAAA=\n`,
      `te\u0000xt\n\n${line}`,
      `te\ud800xt\n\n${line}`,
      `${text}\n${line.repeat(65)}`,
    ];
    // Nothing before or after what a line is, and no key id without a signature behind it.
    for (const part of [`x${line}`, line.replace('\n', ' x\n'), '— a AAAAAA==\n'])
      bad.push(`${text}\n${part}`);
    for (const each of bad) expect(parseNote(each), JSON.stringify(each.slice(0, 90))).toBeNull();
    expect(parseNote(`${text}\n— a AAAAAAA=\n`)?.signatures).toHaveLength(1);
    expect(parseNote(`${text}\n${line.repeat(64)}`)?.signatures).toHaveLength(64);
  });

  it('is not made of a text that it could not hold', () => {
    for (const text of ['', 'no newline', 'a\tb\n', 'a\r\n', 'a\ud800\n']) {
      expect(() => signNote(text, signer), JSON.stringify(text)).toThrow(TypeError);
    }
  });
});

describe('a checkpoint', () => {
  it('is origin, size and root, one a line', () => {
    const text = `${ORIGIN}\n12\n${root.toString('base64')}\n`;
    expect(formatCheckpoint(checkpoint)).toBe(text);
    expect(parseCheckpoint(text)).toEqual(checkpoint);
    expect(note.startsWith(`${text}\n— ${ORIGIN} `)).toBe(true);
  });

  it('is null with a line too few, too many or badly written', () => {
    const hash = root.toString('base64');
    const bad = [
      '',
      `\n12\n${hash}\n`,
      `${ORIGIN}\n12\n`,
      `${ORIGIN}\n12\n${hash}\n\n`,
      `${ORIGIN}\n12\n${hash}\nextension\n`,
      `${ORIGIN}\n012\n${hash}\n`,
      `${ORIGIN}\n1e3\n${hash}\n`,
      `${ORIGIN}\n9007199254740993\n${hash}\n`,
      `${ORIGIN}\n12\n${hash.slice(0, -1)}\n`,
      `${ORIGIN}\n12\n${root.subarray(1).toString('base64')}\n`,
    ];
    for (const text of bad) expect(parseCheckpoint(text), JSON.stringify(text)).toBeNull();
    expect(parseCheckpoint(`${ORIGIN}\n0\n${hash}\n`)?.size).toBe(0);
  });

  it('verifies by the key of its log, and says why it does not', () => {
    const refusalOf = (text: string, vkey = signer.vkey): string => {
      const result = verifyCheckpoint(text, keyOf(vkey));
      return result.ok ? 'ok' : result.why;
    };
    expect(verifyCheckpoint(note, keyOf(signer.vkey))).toEqual({ ok: true, checkpoint });
    expect(refusalOf(note.trimEnd())).toBe('malformed-checkpoint');
    expect(refusalOf(signNote('not a checkpoint\n', signer))).toBe('malformed-checkpoint');
    expect(refusalOf(note, witness.vkey)).toBe('not-signed');
    const otherLog = formatCheckpoint({ ...checkpoint, origin: 'consent.example/ledger/other' });
    expect(refusalOf(signNote(otherLog, signer))).toBe('other-log');
    expect(refusalOf(signNote(formatCheckpoint(checkpoint), witness), witness.vkey)).toBe('other-log');
  });
});

describe('the origin of a log', () => {
  it('is the host of the base URL, its port where that is not the default, and the kid', () => {
    expect(logOrigin('https://Consent.Example/gpd/', 'shop.1_a-b')).toBe('consent.example/ledger/shop.1_a-b');
    expect(logOrigin('https://consent.example:443', 'k')).toBe('consent.example/ledger/k');
    expect(logOrigin('https://consent.example:8443', 'k')).toBe('consent.example:8443/ledger/k');
    expect(logOrigin('https://[::1]:8443', 'k')).toBe('[::1]:8443/ledger/k');
    for (const base of ['https://[::1]:8443', 'https://münchen.example']) {
      const { vkey } = createNoteSigner(logOrigin(base, 'k'), Buffer.alloc(32));
      expect(parseVkey(vkey)?.name).toBe(logOrigin(base, 'k'));
    }
  });
});
