import { createWriteStream, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { verifyLog } from '../../consent/verify-service.ts';
import type { Checkpoint } from '../../ledger/note.ts';
import { tryOr } from '../../lib/errors.ts';
import { createCheckpointBook } from '../../log/checkpoint-files.ts';
import { forgetLaterCheckpoints } from '../../log/checkpoint-store.ts';
import { entryLines, readHead } from '../../log/entries.ts';
import { readKeptNotes } from '../../log/kept-notes.ts';
import { planGoingOn } from '../../ops/checkpoints-service.ts';
import { type CommandContext, command, example, noSuchTenant, requireTenant } from '../command.ts';
import { checkKid, confirm, type DestructiveFlags, type Flags, KID, ONLY_KID } from '../input.ts';
import { conflict, EXIT, io, misused, print, printableJson, say } from '../io.ts';

/** The log of consent: verified, kept going after a loss, exported. */
export function defineLedger(consent: Command): void {
  consent
    .command('verify')
    .description("recompute a tenant's whole log and compare the database with it")
    .argument('[kid]', ONLY_KID, checkKid)
    .option('--against <file>', 'compare with checkpoints kept elsewhere')
    .addHelpText('after', example('gpd consent verify shop --against checkpoints.txt'))
    .action(command(verify));
  consent
    .command('accept-loss')
    .description('resume signing a log on this node after entries or checkpoints.log were lost')
    .argument('<kid>', KID, checkKid)
    .option('--yes', 'do not ask')
    .option('--dry-run', 'show whether entries were lost; change nothing')
    .addHelpText('after', example('gpd consent accept-loss shop --dry-run'))
    .action(command(acceptLoss));
  consent
    .command('export')
    .description("export a tenant's log as NDJSON")
    .argument('[kid]', ONLY_KID, checkKid)
    .option('--out <file>', 'write to this new file instead of standard output')
    .addHelpText('after', example('gpd consent export shop --out shop-log.ndjson'))
    .action(command(exportLog));
}

const SAY_EVERY = 50_000;

function readAgainst(file: string | undefined, vkey: string): Checkpoint[] {
  if (file === undefined) return [];
  const text = tryOr(() => readFileSync(file, 'utf8'), null);
  if (text === null) throw misused(`cannot read ${file}`);
  const kept = readKeptNotes(text, vkey);
  if (kept.length === 0) throw misused(`${file} has no checkpoint that this log signed`);
  return kept;
}

export async function verify(
  context: CommandContext,
  given: string | undefined,
  options: Flags<'against'>,
): Promise<void> {
  const { database } = await context.open();
  const kid = await context.resolveKid(given);
  const keys = await context.tenant(kid);
  const { book } = await context.services();
  let said = 0;
  const onProgress = (done: number): void => {
    if (done - said < SAY_EVERY) return;
    said = done;
    say(`${done.toLocaleString('en')} entries`);
  };
  const against = readAgainst(options.against, keys.signer.vkey);
  const result = await verifyLog(database, kid, {
    trusted: { book, keys, against },
    now: Date.now(),
    onProgress,
  });
  if (!result) throw noSuchTenant(kid);
  const { size, root, ok, problems } = result;
  print(result, () => [
    `entries  ${size.toLocaleString('en')}`,
    `root     ${root}`,
    ...(ok
      ? [
          'The log is whole: every entry, checkpoint, opening, state, policy, purpose and anchored hour matches.',
        ]
      : problems.map(
          ({ code, seq, what }) => `${code}${seq === undefined ? '' : ` (entry ${seq})`}: ${what}`,
        )),
  ]);
  if (!ok) io().exitCode = EXIT.failure;
}

async function exportLog(
  { open, resolveKid }: CommandContext,
  given: string | undefined,
  options: Flags<'out'>,
): Promise<void> {
  const { database } = await open();
  const kid = await resolveKid(given);
  if ((await readHead(database, kid)) === null) throw noSuchTenant(kid);
  const lines = Readable.from(entryLines(database, kid));
  if (options.out === undefined) {
    const { stdout } = io();
    // For a program the very bytes, for a terminal the same values.
    const shown = stdout.isTTY ? lines.map((line) => printableJson(String(line))) : lines;
    await pipeline(shown, stdout, { end: false });
    return;
  }
  const file = createWriteStream(options.out, { flags: 'wx', mode: 0o600 });
  file.on('error', () => {});
  try {
    await pipeline(lines, file);
  } catch (error) {
    const taken = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw taken ? conflict(`${options.out} already exists; nothing was changed`) : error;
  }
  print({ kid, file: options.out }, () => [`written to ${options.out}`]);
}

/** Where entries were lost outside of gpd, or checkpoints.log was: what is there is signed, and nothing is hidden by it. */
async function acceptLoss(
  { open, config }: CommandContext,
  kid: string,
  options: DestructiveFlags,
): Promise<void> {
  const { database, masterKey, serverSecret } = await open();
  await requireTenant(database, kid);
  const book = createCheckpointBook(config.data_dir, serverSecret);
  const { lines, lost } = await planGoingOn({ database, masterKey, book, now: Date.now() }, kid);
  const signed = lost[0]?.signed ?? null;
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
