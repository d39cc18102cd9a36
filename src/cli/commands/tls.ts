import { writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import { createFolder } from '../../db/own-files.ts';
import { addCommand, type CommandContext, collect, type Flags } from '../command-service.ts';
import { misused, print } from '../io-service.ts';
import { expectNoFile } from '../new-files.ts';

export function define(tls: Command): void {
  addCommand(tls, 'init', init, {
    about: 'create a private CA and a certificate signed by it',
    example: 'gpd tls init --host gpd.shop.example --host 10.0.0.5',
  })
    .option('--host <name>', 'a name or address of the server; repeat it for more', collect, [])
    .option('--out <dir>', 'where to write (default: tls in the data directory)');
  addCommand(tls, 'csr', csr, {
    about: 'create a private key and a signing request for a CA of your choice',
    example: 'gpd tls csr --host gpd.shop.example --out ./tls',
  })
    .option('--host <name>', 'a name or address of the server; repeat it for more', collect, [])
    .option('--out <dir>', 'where to write (default: tls in the data directory)');
}

type TlsOptions = Flags<'out'> & { readonly host: string[] };

const HOST_NAME =
  /^(?:\*\.)?(?=.{1,253}$)(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

function checkHosts(hosts: readonly string[]): readonly string[] {
  const bad = hosts.find((host) => isIP(host) === 0 && !HOST_NAME.test(host));
  if (bad !== undefined) throw misused(`--host ${bad}: neither a host name nor an address`);
  return hosts.length === 0 ? ['localhost', '127.0.0.1', '::1'] : hosts;
}

/** Private keys get mode 0600; no file is overwritten. */
function write(
  config: Config,
  { out }: TlsOptions,
  files: Readonly<Record<string, string>>,
): Record<string, string> {
  const directory = out === undefined ? join(config.data_dir, 'tls') : resolve(out);
  const paths = Object.fromEntries(Object.keys(files).map((name) => [name, join(directory, name)]));
  for (const path of Object.values(paths)) expectNoFile(path);
  createFolder(directory);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), text, { flag: 'wx', mode: name.endsWith('.key') ? 0o600 : 0o644 });
  }
  return paths;
}

async function init({ config }: CommandContext, options: TlsOptions): Promise<void> {
  const { createSelfSigned } = await import('../../ops/tls-service.ts');
  const hosts = checkHosts(options.host);
  const paths = write(config, options, createSelfSigned(hosts, Date.now()));
  print({ hosts, ...paths }, () => [
    `certificate  ${paths['server.crt']}`,
    `private key  ${paths['server.key']}`,
    `Browsers trust it once they trust ${paths['ca.crt']}.`,
    `Next: GPD_TLS_CERT=${paths['server.crt']} GPD_TLS_KEY=${paths['server.key']} gpd serve`,
  ]);
}

async function csr({ config }: CommandContext, options: TlsOptions): Promise<void> {
  const { createSigningRequest } = await import('../../ops/tls-service.ts');
  const hosts = checkHosts(options.host);
  const paths = write(config, options, createSigningRequest(hosts));
  print({ hosts, ...paths }, () => [
    `signing request  ${paths['server.csr']}`,
    `private key      ${paths['server.key']}`,
  ]);
}
