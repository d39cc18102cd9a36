import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { writeNewFile } from '../../../src/cli/new-files.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { readRecipient } from '../../../src/rights/dsar/envelope.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { dumpDatabase } from '../../support/database.ts';
import { describeWithTool } from '../../support/tools.ts';
import {
  createRecipient,
  type Held,
  holdSomebody,
  missingTool,
  requestId,
  VISITOR,
  write,
} from './support.ts';

// Each starts the program, and the first of them makes a key of 3072 bits.
vi.setConfig({ testTimeout: 120_000 });

let subject: Held;
beforeAll(async () => {
  subject = await holdSomebody();
});

const who = `--visitor=${VISITOR}`;

/** It ended with this code, said nothing on stdout, wrote no file and no audit row. */
async function refused(code: number, flags: readonly string[]): Promise<string> {
  const directory = tempDir('out');
  const before = (await dumpDatabase(subject.dataDir))['audit_log'];
  const out = flags.includes('--out') ? [] : ['--out', join(directory, 'a.zip')];
  const ran = await subject.cli('dsar', 'export', ...flags, ...out, '--json');
  expect(ran).toMatchObject({ code, stdout: '' });
  expect(readdirSync(directory)).toEqual([]);
  expect((await dumpDatabase(subject.dataDir))['audit_log']).toEqual(before);
  return ran.stderr;
}

describe('gpd dsar export refuses', () => {
  it.each([
    ['nobody named', ['--tenant', KID], 2, /--visitor/],
    ['two named', ['--tenant', KID, who, '--request', requestId(1)], 2, /one person/],
    ['an id that is no text', ['--tenant', KID, '--principal', 'a\u0007b'], 2, /id/],
    ['standard output', ['--tenant', KID, who, '--out', '-'], 2, /--out/],
    ['a directory that is not there', ['--tenant', KID, who, '--out', '/nowhere/at/all.zip'], 2, /directory/],
    ['a tenant that is not there', ['--tenant', 'nobody', who], 3, /no tenant "nobody"; gpd tenants list/],
    ['a request that is not there', ['--tenant', KID, '--request', requestId(999)], 3, /nothing is held/],
    ['a principal that is not there', ['--tenant', KID, '--principal', 'nobody'], 3, /nothing is held/],
    ['a visitor of another tenant', ['--tenant', 'other', who], 3, /nothing is held/],
    ['a request of another tenant', ['--tenant', 'other', '--request', requestId(1)], 4, /tenant/],
    ['a certificate that is not there', ['--tenant', KID, who, '--encrypt-to', '/nowhere.pem'], 3, /nowhere/],
  ])('%s', async (_name, flags, code, message) => {
    // gpd writes the audit row before it finds that it cannot write: the attempt concerned somebody's data.
    if (flags.includes('/nowhere/at/all.zip')) {
      const ran = await subject.cli('dsar', 'export', ...flags);
      expect(ran).toMatchObject({ code, stdout: '' });
      expect(ran.stderr).toMatch(message);
      return;
    }
    expect(await refused(code, flags)).toMatch(message);
  });

  it('a file that is there already, and leaves it alone', async () => {
    const file = write(join(tempDir('out'), 'a.zip'), 'mine');
    expect(await refused(7, ['--tenant', KID, who, '--out', file])).toContain('already exists');
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });
});

describeWithTool('gpd dsar export --encrypt-to refuses', missingTool('openssl', 'version'), () => {
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  it.each([
    ['a key that is no RSA', ec, /RSA/],
    ['a short key', ['-newkey', 'rsa:1024'], /2048/],
    ['a key that may only sign', ['-newkey', 'rsa:2048', '-addext', 'keyUsage=digitalSignature'], /keyUsage/],
  ])('%s', async (_name, flags, message) => {
    const { certificate } = createRecipient(...flags);
    expect(await refused(2, ['--tenant', KID, who, '--encrypt-to', certificate])).toMatch(message);
  });

  it('a certificate that is over or not yet good, and what is none', async () => {
    const { certificate, key } = createRecipient();
    const file = readFileSync(certificate);
    const now = Date.now();
    expect(readRecipient(file, now).fingerprint).toMatch(/^[0-9A-F:]{95}$/);
    expect(() => readRecipient(file, now + 31 * DAY)).toThrow('expired');
    expect(() => readRecipient(file, now - DAY)).toThrow('not valid yet');
    expect(await refused(2, ['--tenant', KID, who, '--encrypt-to', key])).toMatch(/no certificate/);
  });
});

describe('a new file', () => {
  it('never takes the place of one that came in the meantime', async () => {
    const path = join(tempDir('new'), 'file');
    const writing = writeNewFile(path, async (output) => {
      writeFileSync(path, 'theirs');
      await new Promise<void>((resolve) => output.end('mine', () => resolve()));
    });
    await expect(writing).rejects.toMatchObject({ exit: 'conflict' });
    expect(readdirSync(join(path, '..'))).toEqual(['file']);
    expect(readFileSync(path, 'utf8')).toBe('theirs');
  });

  it('leaves nothing when what fills it fails', async () => {
    const path = join(tempDir('new'), 'file');
    const writing = writeNewFile(path, async (output) => {
      output.write('half');
      throw new Error('no more');
    });
    await expect(writing).rejects.toThrow('no more');
    expect(readdirSync(join(path, '..'))).toEqual([]);
  });
});

describe('gpd dsar export of a tenant that names nobody', () => {
  it('says so beside it, and writes it all the same; once both are set it says nothing', async () => {
    const directory = tempDir('unnamed');
    const export_ = (name: string) =>
      subject.cli('dsar', 'export', '--tenant', KID, who, '--out', join(directory, name));
    const setContact = (controller: string, contact: string) =>
      subject.cli('tenants', 'set', KID, `notice.controller=${controller}`, `notice.contact=${contact}`);
    await setContact('', ' ');
    const unnamed = await export_('one.zip');
    expect(unnamed.code).toBe(0);
    expect(unnamed.stdout).not.toContain('notice.');
    expect(unnamed.stderr).toMatch(/does not say who is responsible.*notice\.controller=… notice\.contact=…/);
    await setContact('Lanterne', 'privacy@shop.example');
    const named = await export_('two.zip');
    expect([named.code, named.stderr.includes('notice.')]).toEqual([0, false]);
  });
});
