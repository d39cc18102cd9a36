import { resolve } from 'node:path';
import type { Command } from 'commander';
import { readRecoveryKey } from '../../keys/recovery-key.ts';
import { chunksOf } from '../../lib/collections.ts';
import { confirmRecoveryKey, printRecoveryKey, recoverMasterKey } from '../../ops/escrow-files.ts';
import { masterKeyPath } from '../../tenants/master-key-files.ts';
import { addCommand, type CommandContext, type Flags } from '../command-service.ts';
import { failed, io, misused, print, say } from '../io-service.ts';
import { expectNoFile } from '../new-files.ts';

export function define(masterKey: Command): void {
  addCommand(masterKey, 'escrow', escrow, {
    about: 'print the recovery key: the master key in groups that you can type',
    example: 'gpd master-key escrow | lp',
  });
  addCommand(masterKey, 'confirm', confirmPaper, {
    about: 'check the recovery key that you type from paper',
    example: 'gpd master-key confirm',
  });
  addCommand(masterKey, 'recover', recover, {
    about: 'write the master key file from a recovery key on standard input',
    example: 'gpd master-key recover --out /etc/gpd/master.key',
  }).option('--out <file>', 'where to write (default: where gpd looks for the master key)');
}

/**
 * The recovery key is read from standard input, never from an argument, which every user of the machine can
 * see.
 */

const GROUPS_A_LINE = 5;
/** Bytes. The groups of a recovery key with some text around them take a few hundred. */
const MAX_INPUT = 16_384;

async function typedKey(): Promise<Buffer> {
  if (io().stdin.isTTY) say('Type the groups of the recovery key, then Ctrl-D:');
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of io().stdin) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > MAX_INPUT) throw misused('not a recovery key: it is too long');
  }
  const read = readRecoveryKey(Buffer.concat(chunks).toString('latin1'));
  if (!read.ok) throw misused(`${read.reason}; nothing was changed`);
  return read.key;
}

async function escrow({ config, open }: CommandContext): Promise<void> {
  const store = await open();
  const printed = printRecoveryKey(store, config);
  const { groups, fingerprint } = printed;
  print(printed, () => [
    `# gpd recovery key, ${groups.length} groups, fingerprint ${fingerprint}`,
    '# Anyone who has it and a backup can read everything: keep it locked up, away from the backups.',
    ...[...chunksOf(groups, GROUPS_A_LINE)].map((line) => line.join(' ')),
  ]);
  say('Print it or write it down. Next: gpd master-key confirm, and type it from the paper');
}

async function confirmPaper({ config, open }: CommandContext): Promise<void> {
  const key = await typedKey();
  const store = await open();
  const { matches, fingerprint } = await confirmRecoveryKey(store, config, key, Date.now());
  if (!matches) {
    throw failed(
      'this recovery key belongs to another master key; print the right one with gpd master-key escrow',
    );
  }
  print({ confirmed: true, fingerprint }, () => [
    `the paper has the master key of this data, fingerprint ${fingerprint}`,
  ]);
}

async function recover({ config }: CommandContext, options: Flags<'out'>): Promise<void> {
  const file = options.out === undefined ? masterKeyPath(config) : resolve(options.out);
  expectNoFile(file);
  const key = await typedKey();
  const recovered = await recoverMasterKey(config, key, options.out === undefined ? undefined : file);
  print(recovered, () => [
    `master key   ${recovered.file}`,
    `fingerprint  ${recovered.fingerprint}`,
    recovered.opens ? 'It opens the existing data.' : 'Next: gpd restore FILE',
  ]);
}
