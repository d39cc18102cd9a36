import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { describeWithTool } from '../../support/tools.ts';
import {
  ALICE,
  PERIOD,
  type People,
  startWithPeople,
  unpackParts,
  verifyFolder,
  verifyFolders,
} from './support.ts';

/** `verify.py`, which is in each file of evidence, under Python and the package `cryptography`. */

function missingVerifier(): string | null {
  const hasPackage = spawnSync('python3', ['-c', 'import cryptography']).status === 0;
  return hasPackage ? null : 'needs python3 with the package cryptography';
}

describeWithTool('views/evidence/verify.py', missingVerifier(), () => {
  let people: People;
  beforeAll(async () => {
    people = await startWithPeople();
  });
  afterAll(() => people.api.stop());

  async function make(...flags: readonly string[]) {
    const file = join(tempDir('out'), 'evidence.zip');
    expect(await people.cli('evidence', KID, ...PERIOD, '--out', file, ...flags)).toMatchObject({ code: 0 });
    return { file, ...unpackParts(file) };
  }

  it.each([
    ['a person', ['--principal', ALICE]],
    ['a tenant', []],
  ])('accepts the file of %s, unpacked and as it is', async (_name, flags) => {
    const { directory, file, parts } = await make(...flags);
    const verified = verifyFolder(directory);
    expect(verified).toMatchObject({ status: 0, stderr: '' });
    expect(verified.stdout).toContain('Everything holds');
    expect(verifyFolder(directory, file)).toMatchObject({ status: 0 });
    const vkey = parts.get('checkpoints/vkey.txt')?.toString() ?? '';
    expect(verifyFolder(directory, '--vkey', vkey)).toMatchObject({ status: 0 });
    const foreign = verifyFolder(directory, '--vkey', vkey.replace('/acme', '/evil'));
    expect(foreign).toMatchObject({ status: 1 });
    expect(foreign.stdout).toContain('checkpoints/vkey.txt');
  });

  /** Three parts of one kind are enough. */
  const someOf = (names: readonly string[]): readonly string[] => {
    const kindOf = (name: string): string => name.replace(/\d+/g, '0');
    return names.filter(
      (name, i) => names.slice(0, i).filter((one) => kindOf(one) === kindOf(name)).length < 3,
    );
  };

  /** Changes each of the parts in a copy. @returns those of which the program says nothing, with what it says */
  function silentAbout(
    directory: string,
    names: readonly string[],
    change: (name: string, copy: string) => void,
  ): readonly string[] {
    const copies = names.map((name) => {
      const copy = tempDir('changed');
      cpSync(directory, copy, { recursive: true });
      change(name, copy);
      return copy;
    });
    const verified = verifyFolders(join(directory, 'verify.py'), copies);
    expect(verified).toHaveLength(names.length);
    return verified.flatMap(([status, stdout], i) =>
      status === 1 && stdout.includes(`FAILED ${names[i]}:`) ? [] : [`${names[i]}: ${stdout}`],
    );
  }

  it('names each part of which one byte was changed', async () => {
    const { directory, parts } = await make('--principal', ALICE);
    const changeable = [...parts.keys()].filter((name) => !['made-at.txt', 'verify.py'].includes(name));
    const silent = silentAbout(directory, someOf(changeable), (name, copy) => {
      const bytes = parts.get(name) ?? Buffer.alloc(0);
      const changed = Buffer.from(bytes.length === 0 ? 'a' : bytes);
      const at = Math.floor(bytes.length / 2);
      changed[at] = bytes[at] === 0x61 ? 0x62 : 0x61;
      writeFileSync(join(copy, name), changed);
    });
    expect(silent).toEqual([]);
    expect(verifyFolder(directory)).toMatchObject({ status: 0 });
  });

  it('names itself where it was changed, for a reader with the program of another file', async () => {
    const { directory, file, parts } = await make('--principal', ALICE);
    const another = await make();
    writeFileSync(join(directory, 'verify.py'), `${String(parts.get('verify.py'))}# one more line\n`);
    for (const verified of [verifyFolder(directory), verifyFolder(another.directory, directory)]) {
      expect(verified).toMatchObject({ status: 1, stdout: expect.stringContaining('FAILED verify.py:') });
    }
    expect(verifyFolder(another.directory, file)).toMatchObject({ status: 0 });
  });

  it('names the part even where SHA256SUMS was computed again', async () => {
    const { directory, parts } = await make();
    const original = readFileSync(join(directory, 'SHA256SUMS'), 'utf8');
    const bound = [...parts.keys()].filter((name) =>
      /^(?:entries|openings)\.ndjson$|^proofs\/|^checkpoints\/(?:\d|export)|^banner\/.*json$|^definitions\/policy-/.test(
        name,
      ),
    );
    expect(bound.length).toBeGreaterThan(6);
    const silent = silentAbout(directory, someOf(bound), (name, copy) => {
      const text = parts.get(name)?.toString() ?? '';
      const at = [...text].findIndex((sign, i) => i > text.length / 2 && /[0-9a-z]/.test(sign));
      const changed = `${text.slice(0, at)}${text[at] === '1' ? 2 : 1}${text.slice(at + 1)}`;
      writeFileSync(join(copy, name), changed);
      const digest = createHash('sha256').update(changed).digest('hex');
      const lines = original
        .split('\n')
        .map((one) => (one.endsWith(`  ${name}`) ? `${digest}  ${name}` : one));
      writeFileSync(join(copy, 'SHA256SUMS'), lines.join('\n'));
    });
    expect(silent).toEqual([]);
  });

  it('names a part that is missing, and one that nobody listed', async () => {
    const { directory, parts } = await make('--principal', ALICE);
    rmSync(join(directory, 'openings.ndjson'));
    writeFileSync(join(directory, 'extra.txt'), 'more');
    const { status, stdout } = verifyFolder(directory);
    expect(status).toBe(1);
    for (const name of ['openings.ndjson', 'extra.txt']) expect(stdout).toContain(`FAILED ${name}:`);
    expect(parts.size).toBeGreaterThan(10);
  });
});
