import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseEnvironment } from '../../../bin/environment.mjs';
import { tempDir } from '../../support/command.ts';

/** /usr/bin/gpd of the Debian package, called by root, reads gpd.env as the unit does. */

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));

function program(file: string, text: string): void {
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

/** Returns a copy of the command with paths below a folder, an `id` that pretends to be root, and a gpd that prints its environment. */
function commandIn(folder: string): string {
  for (const name of ['bin', 'etc', 'lib', 'lib/bin']) mkdirSync(join(folder, name));
  program(join(folder, 'bin/id'), '#!/bin/sh\n[ "$1" = gpd ] || echo 0\n');
  program(join(folder, 'bin/setpriv'), '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n');
  writeFileSync(join(folder, 'lib/bin/gpd'), 'process.stdout.write(JSON.stringify(process.env))');
  copyFileSync(join(PROJECT, 'bin/environment.mjs'), join(folder, 'lib/bin/environment.mjs'));
  const text = readFileSync(join(PROJECT, 'packaging/debian/gpd'), 'utf8')
    .replaceAll('/usr/lib/gpd/', `${folder}/lib/`)
    .replaceAll('/etc/gpd/', `${folder}/etc/`)
    .replaceAll('/usr/bin/node', process.execPath);
  program(join(folder, 'gpd'), text);
  return join(folder, 'gpd');
}

function environmentOf(environmentFile: string): Record<string, string> {
  const folder = tempDir('command');
  const command = commandIn(folder);
  writeFileSync(join(folder, 'etc/gpd.env'), environmentFile);
  const env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin`, GPD_LOG_LEVEL: 'info' };
  const { stdout, stderr, status } = spawnSync('sh', [command], { encoding: 'utf8', env });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return JSON.parse(stdout) as Record<string, string>;
}

describe('the Debian command', () => {
  it('hands every character of a database address to the program: an erasure must not go to another database', () => {
    const url = 'postgres://gpd:pa$w0rd`id`@db.internal/gpd?sslmode=verify-full&sslrootcert=/etc/gpd/ca.pem';
    expect(environmentOf(`GPD_DATABASE_URL=${url}\n`)).toMatchObject({ GPD_DATABASE_URL: url });
  });

  it('runs nothing that the file holds', () => {
    const folder = tempDir('ran');
    const values = [`$(touch ${folder}/a)`, `\`touch ${folder}/b\``, `x; touch ${folder}/c`, `'"'; touch d`];
    const found = environmentOf(
      values.map((value, i) => `GPD_V${i}="${value}"\nGPD_W${i}=${value}\n`).join(''),
    );
    expect(found['GPD_W0']).toBe(values[0]);
    expect(execFileSync('ls', [folder], { encoding: 'utf8' })).toBe('');
  });

  it('takes the file before its own environment, as the unit does, and passes a documented sender on', () => {
    const lines = { GPD_SMTP_FROM: 'Privacy <privacy@shop.example>', GPD_LOG_LEVEL: 'warn' };
    const text = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`);
    expect(environmentOf(text.join(''))).toMatchObject(lines);
  });

  it('does nothing where the file cannot be read as one', () => {
    const folder = tempDir('unread');
    const command = commandIn(folder);
    mkdirSync(join(folder, 'etc/gpd.env'));
    const env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin` };
    const { stdout, status } = spawnSync('sh', [command], { encoding: 'utf8', env });
    expect({ stdout, failed: status !== 0 }).toEqual({ stdout: '', failed: true });
  });
});

describe('bin/environment.mjs reads a file as systemd 252 does', () => {
  it.each([
    ['A=b # c', { A: 'b # c' }],
    ['# c\n; c\n  A = b  \n', { A: 'b' }],
    ['A=', { A: '' }],
    ['A="b c"  \'d\'\n', { A: 'b cd' }],
    ['A=b"c"', { A: 'b"c"' }],
    ['A="x\\"\\\\\\$\\`\\n"', { A: 'x"\\$`\\n' }],
    ["A='x\\y$z'", { A: 'x\\y$z' }],
    ['A="two\nlines"\nB=1', { A: 'two\nlines', B: '1' }],
    ['A=one\\\ntwo', { A: 'onetwo' }],
    ['A=a\\ \\&b', { A: 'a &b' }],
    ['export A=b\n1A=b\nnothing\nB=c\r\n', { B: 'c' }],
    ['A=1\nA=2', { A: '2' }],
    ['# joined \\\nA=1\nB=2', { B: '2' }],
  ])('%j', (text, expected) => {
    expect(Object.fromEntries(parseEnvironment(text))).toEqual(expected);
  });
});
