import { writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { makeFolder } from '../../db/durable-files.ts';
import { expectNoFile } from '../new-file.ts';
import { CommandFailed, print } from '../output.ts';
import { configFor } from '../run.ts';
import { collect } from './tenants.ts';

interface TlsOptions {
  readonly host: string[];
  readonly out?: string;
}

const HOST_NAME =
  /^(?:\*\.)?(?=.{1,253}$)(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

function checkHosts(hosts: readonly string[]): readonly string[] {
  const bad = hosts.find((host) => isIP(host) === 0 && !HOST_NAME.test(host));
  if (bad !== undefined)
    throw new CommandFailed('usage', `--host ${bad}: neither a host name nor an address`);
  return hosts.length === 0 ? ['localhost', '127.0.0.1', '::1'] : hosts;
}

/** Private keys are 0600; nothing that is there is overwritten. */
function write({ out }: TlsOptions, files: Readonly<Record<string, string>>): Record<string, string> {
  const directory = out === undefined ? join(configFor().data_dir, 'tls') : resolve(out);
  const paths = Object.fromEntries(Object.keys(files).map((name) => [name, join(directory, name)]));
  for (const path of Object.values(paths)) expectNoFile(path);
  makeFolder(directory);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), text, { flag: 'wx', mode: name.endsWith('.key') ? 0o600 : 0o644 });
  }
  return paths;
}

export function registerTls(program: Command): void {
  const tls = program.command('tls').description('certificates for https without a proxy');
  const subcommand = (name: string, about: string, work: (options: TlsOptions) => Promise<void>): Command =>
    tls
      .command(name)
      .description(about)
      .option('--host <name>', 'a name or address of the server; repeat it for more', collect, [])
      .option('--out <dir>', 'where to write (default: tls in the data directory)')
      .action(work);
  subcommand('init', 'make a private CA and a certificate signed by it', async (options) => {
    const { makeSelfSigned } = await import('../../ops/tls.ts');
    const hosts = checkHosts(options.host);
    const paths = write(options, makeSelfSigned(hosts, Date.now()).files);
    print({ hosts, ...paths }, () => [
      `certificate  ${paths['server.crt']}`,
      `private key  ${paths['server.key']}`,
      `Browsers trust it once they trust ${paths['ca.crt']}.`,
      `Next: GPD_TLS_CERT=${paths['server.crt']} GPD_TLS_KEY=${paths['server.key']} gpd serve`,
    ]);
  });
  subcommand('csr', 'make a private key and a signing request for a CA of your choice', async (options) => {
    const { makeSigningRequest } = await import('../../ops/tls.ts');
    const hosts = checkHosts(options.host);
    const paths = write(options, makeSigningRequest(hosts).files);
    print({ hosts, ...paths }, () => [
      `signing request  ${paths['server.csr']}`,
      `private key      ${paths['server.key']}`,
    ]);
  });
}
