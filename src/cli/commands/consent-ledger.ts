import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { verifyLog } from '../../consent/verify-service.ts';
import type { Checkpoint } from '../../ledger/note.ts';
import { createCheckpointBook, readKeptNotes } from '../../log/checkpoint-files.ts';
import { forgetLaterCheckpoints } from '../../log/checkpoint-store.ts';
import { entryLines, readHead } from '../../log/entries-store.ts';
import { planContinuation } from '../../ops/checkpoints-service.ts';
import {
  addCommand,
  type CommandContext,
  type Flags,
  noSuchTenant,
  readGivenFile,
  requireTenant,
  YES,
} from '../command-service.ts';
import {
  confirm,
  conflict,
  type DestructiveFlags,
  EXIT,
  io,
  misused,
  print,
  printableJson,
} from '../io-service.ts';
import { createBar, QUIET_MS } from '../progress-service.ts';

/** `gpd consent verify|accept-loss|export`: verifies the consent log, resumes it after a loss, exports it. */
export function defineLedger(consent: Command): void {
  addCommand(consent, 'verify [kid]', verify, {
    about: "recompute a tenant's whole log and compare the database with it",
    example: 'gpd consent verify shop --against checkpoints.txt',
  }).option('--against <file>', 'compare with checkpoints kept elsewhere');
  addCommand(consent, 'accept-loss <kid>', acceptLoss, {
    about: 'resume signing a log on this node after entries or checkpoints.log were lost',
    example: 'gpd consent accept-loss shop --dry-run',
  })
    .option(...YES)
    .option('--dry-run', 'show whether entries were lost; change nothing');
  addCommand(consent, 'export [kid]', exportLog, {
    about: "export a tenant's log as NDJSON",
    example: 'gpd consent export shop --out shop-log.ndjson',
  }).option('--out <file>', 'write to this new file instead of standard output');
}

function readAgainst(file: string | undefined, vkey: string): Checkpoint[] {
  if (file === undefined) return [];
  const text = readGivenFile(file);
  if (text === null) throw misused(`cannot read ${file}`);
  const checkpoints = readKeptNotes(text.toString('utf8'), vkey);
  if (checkpoints.length === 0) throw misused(`${file} has no checkpoint that this log signed`);
  return checkpoints;
}

export async function verify(
  context: CommandContext,
  kidArgument: string | undefined,
  options: Flags<'against'>,
): Promise<void> {
  const { database } = await context.open();
  const kid = await context.resolveKid(kidArgument);
  const keys = await context.tenant(kid);
  const { book } = await context.services();
  const bar = createBar('entries', QUIET_MS);
  const onProgress = (done: number, total: number): void =>
    bar.update({ done, bytes: done, totalBytes: total });
  const against = readAgainst(options.against, keys.signer.vkey);
  const result = await verifyLog(database, kid, {
    trusted: { book, keys, against },
    now: Date.now(),
    onProgress,
  }).finally(bar.end);
  if (!result) throw noSuchTenant(kid);
  const { size, root, ok, problems } = result;
  print(result, () => [
    `entries  ${size.toLocaleString('en')}`,
    `root     ${root}`,
    ...(ok
      ? [
          'The log is whole: every entry, checkpoint, commitment opening, state, policy, purpose and anchored hour matches.',
        ]
      : problems.map(
          ({ code, seq, what: text }) => `${code}${seq === undefined ? '' : ` (entry ${seq})`}: ${text}`,
        )),
  ]);
  if (!ok) io().exitCode = EXIT.failure;
}

async function exportLog(
  { open, resolveKid }: CommandContext,
  kidArgument: string | undefined,
  options: Flags<'out'>,
): Promise<void> {
  const { database } = await open();
  const kid = await resolveKid(kidArgument);
  if ((await readHead(database, kid)) === null) throw noSuchTenant(kid);
  const lines = Readable.from(entryLines(database, kid));
  if (options.out === undefined) {
    const { stdout } = io();
    // A program gets the exact bytes; a terminal gets escaped ones with the same values.
    const shown = stdout.isTTY ? lines.map((line) => printableJson(String(line))) : lines;
    await pipeline(shown, stdout, { end: false });
    return;
  }
  const file = createWriteStream(options.out, { flags: 'wx', mode: 0o600 });
  file.on('error', () => {});
  try {
    await pipeline(lines, file);
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw exists ? conflict(`${options.out} already exists; nothing was changed`) : error;
  }
  print({ kid, file: options.out }, () => [`written to ${options.out}`]);
}

/**
 * Signs the present entries after entries or checkpoints.log were lost. It hides nothing: earlier checkpoints
 * still prove the loss.
 */
async function acceptLoss({ open, config }: CommandContext, kid: string, options: DestructiveFlags) {
  const { database, masterKey, serverSecret } = await open();
  await requireTenant(database, kid);
  const book = createCheckpointBook(config.data_dir, serverSecret);
  const { lines, losses } = await planContinuation({ database, masterKey, book, now: Date.now() }, kid);
  const signed = losses[0]?.signed ?? null;
  if (lines.length > 0 && options.dryRun !== true) {
    await confirm(options, `this node continues to sign the log of ${kid} in its present state`);
    await forgetLaterCheckpoints(database, kid);
    await book.keepAfterLoss(lines);
  }
  print({ kid, accepted: lines.length > 0, signed, dryRun: options.dryRun === true }, () => [
    lines.length === 0
      ? `the log of ${kid} extends what was signed; nothing was changed`
      : `this node now signs the log of ${kid} in its present state${signed === null ? '' : `; ${signed} entries were signed before`}`,
  ]);
}
