import { resolve } from 'node:path';
import { readRecoveryKey } from '../../keys/recovery-key.ts';
import { chunksOf } from '../../lib/collections.ts';
import { confirmRecoveryKey, printRecoveryKey, recoverMasterKey } from '../../ops/escrow.ts';
import { masterKeyPath } from '../../tenants/master-key-files.ts';
import { command, withContext } from '../command.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { expectNoFile } from '../new-file.ts';
import { failed, misused, print, say } from '../output.ts';
import { configFor } from '../run.ts';

/** `gpd master-key`: the recovery key on paper. A secret comes by standard input, never by an argument. */

const GROUPS_A_LINE = 5;
/** The groups with words around them take a few hundred. */
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
  if (!read.ok) throw misused(`${read.why}; nothing was changed`);
  return read.key;
}

const escrow = command(async ({ store, config }) => {
  const printed = printRecoveryKey(store, config);
  const { groups, fingerprint } = printed;
  print(printed, () => [
    `# gpd recovery key, ${groups.length} groups, fingerprint ${fingerprint}`,
    '# Anyone who has it and a backup can read everything: keep it locked up, away from the backups.',
    ...[...chunksOf(groups, GROUPS_A_LINE)].map((line) => line.join(' ')),
  ]);
  say('Print it or write it down. Next: gpd master-key confirm, and type it from the paper');
  return Promise.resolve();
});

async function confirm(): Promise<void> {
  const key = await typedKey();
  await withContext(async ({ store, config }) => {
    const { matches, fingerprint } = await confirmRecoveryKey(store, config, key, Date.now());
    if (!matches) {
      throw failed(
        'this recovery key belongs to another master key; print the right one with gpd master-key escrow',
      );
    }
    print({ confirmed: true, fingerprint }, () => [
      `the paper has the master key of this data, fingerprint ${fingerprint}`,
    ]);
  });
}

async function recover(options: { readonly out?: string }): Promise<void> {
  const config = configFor();
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

export const ACTIONS: Actions = { escrow, confirm, recover };
