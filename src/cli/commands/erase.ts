import type { Command } from 'commander';
import { databaseLocation } from '../../config.ts';
import { dueIn } from '../../console/words.ts';
import { type Database, openDatabase } from '../../db/engine.ts';
import { holdsOn } from '../../ingest/devices-store.ts';
import { withClosing } from '../../lib/collections.ts';
import { openContests } from '../../rights/contests/store.ts';
import { scrub as scrubReceipts } from '../../rights/erase/clean-service.ts';
import { KEEP_NOTHING, planErasure } from '../../rights/erase/erase-service.ts';
import {
  type ErasureTarget,
  erasedNothing,
  erasesAny,
  erasureState,
  hasFailed,
  heldRows,
  type ScopeCounts,
  scopeResults,
} from '../../rights/erase/erasure-service.ts';
import { UnreadableErasure } from '../../rights/erase/receipts-store.ts';
import { NotTheOwner } from '../../rights/erase/scrub-store.ts';
import { isPrincipalKnown } from '../../rights/erase/shred-store.ts';
import { type EraseTargetBody, type ErasureReceipt, eraseTargetSchema } from '../../schema/rights.ts';
import {
  addCommand,
  type CommandContext,
  checkValue,
  command,
  example,
  type Flags,
  ONE_KID,
  TENANT,
  YES,
} from '../command-service.ts';
import {
  CommandFailed,
  confirm,
  type DestructiveFlags,
  EXIT,
  failed,
  io,
  misused,
  notFound,
  print,
  printTable,
  tableLines,
} from '../io-service.ts';
import { createCount } from '../progress-service.ts';

export function define(erase: Command): void {
  erase
    .option(...TENANT)
    .option('--visitor <id>', 'the visitorId of their device')
    .option('--request <id>', 'a requestId of theirs')
    .option('--principal <id>', 'their principalId: linked requests and the consent record')
    .option('--dry-run', 'show what would be deleted; change nothing')
    .option(...YES)
    .addHelpText('after', example('gpd erase --tenant shop --principal alice --dry-run'))
    .action(command(erasePerson));
  addCommand(erase, 'status', status, {
    about: 'show a receipt',
    example: 'gpd erase status era_01KAY0',
  }).argument('<receipt>', 'id of the receipt');
  addCommand(erase, 'list [kid]', list, {
    about: 'list receipts, newest first',
    example: 'gpd erase list shop',
  });
  addCommand(erase, 'resume', resumeAll, {
    about: 'finish incomplete erasures; may rewrite the database file',
    example: 'gpd erase resume',
  });
  addCommand(erase, 'scrub', scrub, {
    about: 'rewrite the files of PostgreSQL to remove the bytes of erased rows; locks each table meanwhile',
    example: 'gpd erase scrub',
  }).argument(...ONE_KID);
}

export type TargetOptions = Flags<'visitor' | 'request' | 'principal'>;

/** Exactly one of --visitor, --request and --principal. */
export function targetBody(options: TargetOptions): EraseTargetBody {
  const ids = { visitorId: options.visitor, requestId: options.request, principalId: options.principal };
  const named = Object.entries(ids).filter(([, id]) => id !== undefined);
  if (named.length !== 1)
    throw misused('name one person: exactly one of --visitor <id>, --request <id>, --principal <id>');
  return checkValue(eraseTargetSchema, Object.fromEntries(named), 'the id: ');
}

const MAX_LIST = 1000;

/** SQLite deletes rows at once, but while a program has the file open their bytes can stay in it. */
const FILES_IN_USE =
  'Another program has the database open (stop it), or the disk is too full to rewrite it; see docs/operate/erasure-incomplete.md.';

const ID_IS_LEFT =
  'Failed: an id of this person is still in the rewritten database file. `gpd doctor` names foreign objects; see docs/operate/erasure-incomplete.md.';

const NEEDS_SCRUB =
  'Not complete yet: the rows are deleted, and the files of PostgreSQL hold bytes of them until `gpd erase scrub` has run.';

/** @returns no lines where no legal hold kept anything */
function legalHoldText({ scopes }: ErasureReceipt): readonly string[] {
  const n = heldRows(scopes);
  if (n === 0) return [];
  const sentence = erasedNothing(scopes)
    ? `Nothing was erased: ${keepsAll(n)}.`
    : `Partly erased: a legal hold kept ${rowsOf(n)}.`;
  return ['', `${sentence} The request stays open until they are erased.`];
}

const rowsOf = (n: number): string => `${n} row${n === 1 ? '' : 's'}`;
const keepsAll = (n: number): string => `a legal hold keeps ${n === 1 ? 'the only row' : `all ${n} rows`}`;

function printReceipt(receipt: ErasureReceipt): void {
  print(receipt, () => [
    `receipt  ${receipt.receiptId}`,
    `${erasedNothing(receipt.scopes) ? 'asked ' : 'erased'}   ${receipt.erasedAt}`,
    '',
    ...tableLines(receipt.scopes, { SCOPE: 'scope', ACTION: 'action', COUNT: 'count', WHY: 'basis' }),
    ...(receipt.incomplete
      ? [
          '',
          hasFailed(receipt.scopes)
            ? ID_IS_LEFT
            : needsResume(receipt)
              ? 'Not complete yet: rows remain, or the file is not searched or rewritten yet. `gpd erase resume` finishes it now.'
              : NEEDS_SCRUB,
        ]
      : legalHoldText(receipt)),
  ]);
  if (receipt.incomplete) io().exitCode = EXIT.incomplete;
}

/** Refuses an id without data: a mistyped one must not look like a completed erasure. */
async function requireData(
  { open }: CommandContext,
  kid: string,
  { durables, requests, principal }: ErasureTarget,
): Promise<void> {
  const { database } = await open();
  if (durables.length + requests.length > 0) return;
  if (principal && (await isPrincipalKnown(database.read, kid, principal.ref))) return;
  throw notFound(`tenant ${kid} holds nothing under that id; nothing was changed`);
}

/** True if legal holds keep everything that was named. */
const isAllHeld = (planned: ScopeCounts): boolean =>
  heldRows(scopeResults(planned)) > 0 && !erasesAny(planned);

async function printPlan(database: Database, kid: string, target: ErasureTarget, planned: ScopeCounts) {
  const { count, dueAt } = await openContests(database, kid, target);
  const heldDevices = await holdsOn(database.read, kid, target.durables);
  const heldCount = heldRows(scopeResults(planned));
  // A legal hold keeps contests together with their decisions.
  const openCount = (planned.contests?.erased ?? 0) > 0 ? count : 0;
  const plan = {
    tenant: kid,
    dryRun: true,
    devices: target.durables.length - heldDevices.size,
    decisions: planned.decisions?.erased ?? 0,
    consent: target.principal !== null,
    openContests: openCount,
    held: heldCount,
  };
  if (isAllHeld(planned))
    return print(plan, () => [`would erase nothing: ${keepsAll(heldCount)}`, 'Nothing was changed.']);
  print(plan, () => [
    `would erase ${plan.devices} device(s) with ${plan.decisions} decision(s)${plan.consent ? ' and shred the consent record' : ''}`,
    ...(openCount > 0 ? [openText(openCount, dueIn(dueAt, Date.now()).text)] : []),
    ...(heldCount > 0 ? [`a legal hold keeps ${rowsOf(heldCount)}`] : []),
    'Nothing was changed.',
  ]);
}

const openText = (n: number, due: string): string =>
  n === 1
    ? `would erase 1 open contest, ${due}, unanswered`
    : `would erase ${n} open contests unanswered; the first is ${due}`;

async function erasePerson(
  context: CommandContext,
  options: TargetOptions & DestructiveFlags & Flags<'tenant'>,
): Promise<void> {
  const body = targetBody(options);
  const kid = await context.resolveKid(options.tenant, 'option --tenant');
  const by = await context.operator(kid);
  const { api } = (await context.services()).rights;
  const target = await api.findTarget(kid, body);
  await requireData(context, kid, target);
  const { database } = await context.open();
  const planned = await planErasure(database, { kid, target, keep: KEEP_NOTHING });
  if (options.dryRun === true) return printPlan(database, kid, target, planned);
  await confirm(
    options,
    isAllHeld(planned)
      ? 'a legal hold keeps everything, so this records the request and erases nothing'
      : `this erases what tenant ${kid} holds about this person, and cannot be undone`,
  );
  printReceipt(await api.eraseFor(by, body));
}

async function status({ services }: CommandContext, receiptId: string): Promise<void> {
  const { eraser } = (await services()).rights;
  const receipt = await eraser.status(receiptId);
  if (!receipt) throw notFound('no receipt with that id');
  printReceipt(receipt);
}

/** @throws {CommandFailed} that names these receipts; called last, so that the readable ones are printed */
function nameUnreadable(receiptIds: readonly string[]): void {
  if (receiptIds.length === 0) return;
  const ids = receiptIds.join(', ');
  throw failed(`stored receipts cannot be read: ${ids}; restore a backup`);
}

async function list({ resolveKid, operator, services }: CommandContext, kidArgument?: string): Promise<void> {
  const kid = await resolveKid(kidArgument);
  await operator(kid);
  const { eraser } = (await services()).rights;
  const { receipts, unreadable } = await eraser.list(kid, { limit: MAX_LIST });
  printTable(receipts, 'no receipts; `gpd erase` makes the first', {
    RECEIPT: 'receiptId',
    ERASED: 'erasedAt',
    BY: 'requestedBy',
    STATE: ({ scopes }) => erasureState(scopes),
  });
  nameUnreadable(unreadable);
}

async function scrub(context: CommandContext, kid?: string): Promise<void> {
  const { config, operator } = context;
  const { database } = await context.open();
  if (kid !== undefined) await operator(kid);
  if (database.kind === 'sqlite') return resumeAll(context);
  const location = config.migrate_database_url ?? databaseLocation(config);
  const scrubbed = await withClosing(openDatabase({ location }), (owner) =>
    scrubReceipts(database, owner, { now: Date.now(), kid }),
  ).catch((error: unknown) => {
    throw error instanceof NotTheOwner ? new CommandFailed('notAllowed', error.message) : error;
  });
  print({ scrubbed }, () =>
    scrubbed === 0
      ? ['no receipt waits for it']
      : [
          `${scrubbed} erasures are complete now: no table or index of PostgreSQL holds bytes of them`,
          'The write-ahead log, standbys, base backups and dumps may: see docs/rights.md.',
        ],
  );
}

/**
 * True if `gpd erase resume` can finish it; one that waits only for `gpd erase scrub` has no other pending
 * scope.
 */
const needsResume = ({ scopes }: ErasureReceipt): boolean =>
  scopes.some(({ scope, action }) => action === 'failed' || (action === 'pending' && scope !== 'storage'));

async function resumeAll({ services }: CommandContext): Promise<void> {
  const { eraser } = (await services()).rights;
  const { onProgress, end } = createCount('erasures');
  const { receipts, failures } = await eraser.resume(onProgress).finally(end);
  const open = receipts.filter(needsResume).length;
  const failed = failures.filter(({ kid }) => kid !== null).length;
  const all = receipts.length + failed;
  const nothing = failures.length === 0 ? ['no erasure is left to finish'] : [];
  print({ resumed: all, incomplete: open + failed }, () => [
    ...(all === 0 ? nothing : [`${receipts.length - open} of ${all} erasures are complete now`]),
    ...(open > 0 ? [receipts.some(({ scopes }) => hasFailed(scopes)) ? ID_IS_LEFT : FILES_IN_USE] : []),
  ]);
  if (open > 0) io().exitCode = EXIT.incomplete;
  const other = failures.find(({ error }) => !(error instanceof UnreadableErasure));
  if (other) throw other.error;
  nameUnreadable(
    failures.flatMap(({ error }) => (error instanceof UnreadableErasure ? [error.receiptId] : [])),
  );
}
