import { databaseLocation } from '../../config.ts';
import { dueIn } from '../../console/words.ts';
import { type Database, openDatabase } from '../../db/db.ts';
import { withClosing } from '../../lib/functions.ts';
import { openContests } from '../../rights/contests/store.ts';
import { scrub as scrubReceipts } from '../../rights/erase/clean.ts';
import { KEEP_NOTHING, planErasure } from '../../rights/erase/erase.ts';
import { type ErasureTarget, erasureState, heldRows } from '../../rights/erase/erasure.ts';
import { UnreadableErasure } from '../../rights/erase/receipts.ts';
import { NotTheOwner } from '../../rights/erase/scrub.ts';
import { isPrincipalKnown } from '../../rights/erase/shred.ts';
import type { ErasureReceipt } from '../../schema/rights.ts';
import { type CommandContext, command, withContext } from '../command.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { CommandFailed, EXIT, failed, misused, notFound, print, printTable, table } from '../output.ts';
import {
  checkKid,
  confirm,
  type DestructiveFlags,
  type Flags,
  type TargetOptions,
  targetBody,
} from '../run.ts';

const MAX_LIST = 1000;

/** Rows are deleted at once; a program that reads the files can keep their bytes. */
const HELD =
  'Another program has the database open (stop it), or the disk is too full to rewrite it; see docs/operate/erasure-incomplete.md.';

const IN_FILES =
  'Not complete yet: the rows are deleted, and the files of PostgreSQL hold bytes of them until `gpd erase scrub` has run.';

/** Empty where no legal hold kept anything. */
function heldText({ scopes }: ErasureReceipt): readonly string[] {
  const n = heldRows(scopes);
  if (n === 0) return [];
  return [
    '',
    `Partly erased: a legal hold kept ${n} row${n === 1 ? '' : 's'}. The request stays open until they are erased.`,
  ];
}

function printReceipt(receipt: ErasureReceipt): void {
  print(receipt, () => [
    `receipt  ${receipt.receiptId}`,
    `erased   ${receipt.erasedAt}`,
    '',
    ...table([
      ['SCOPE', 'ACTION', 'COUNT', 'WHY'],
      ...receipt.scopes.map(({ scope, action, count, basis }) => [scope, action, String(count), basis ?? '']),
    ]),
    ...(receipt.incomplete
      ? [
          '',
          isHeldUp(receipt)
            ? 'Not complete yet: rows remain, or the file is not searched or rewritten yet. `gpd erase resume` finishes it now.'
            : IN_FILES,
        ]
      : heldText(receipt)),
  ]);
  if (receipt.incomplete) io().exitCode = EXIT.incomplete;
}

/** A mistyped id must not look like an erasure that was done. */
async function requireKnown(
  { database }: CommandContext,
  kid: string,
  { durables, requests, principal }: ErasureTarget,
): Promise<void> {
  if (durables.length + requests.length > 0) return;
  if (principal && (await isPrincipalKnown(database.read, kid, principal.ref))) return;
  throw notFound(`tenant ${kid} holds nothing under that id; nothing was changed`);
}

async function printPlan(database: Database, kid: string, target: ErasureTarget): Promise<void> {
  const planned = await planErasure(database, { kid, target, keep: KEEP_NOTHING });
  const { count, dueAt } = await openContests(database, kid, target);
  // A hold keeps them with their decisions.
  const openCount = (planned.contests?.erased ?? 0) > 0 ? count : 0;
  const plan = {
    tenant: kid,
    dryRun: true,
    devices: target.durables.length,
    decisions: planned.decisions?.erased ?? 0,
    consent: target.principal !== null,
    openContests: openCount,
  };
  print(plan, () => [
    `would erase ${plan.devices} device(s) with ${plan.decisions} decision(s)${plan.consent ? ' and shred the consent record' : ''}`,
    ...(openCount > 0 ? [openText(openCount, dueIn(dueAt, Date.now()).text)] : []),
    'Nothing was changed.',
  ]);
}

const openText = (n: number, due: string): string =>
  n === 1
    ? `would erase 1 open contest, ${due}, unanswered`
    : `would erase ${n} open contests unanswered; the first is ${due}`;

async function erase(options: TargetOptions & DestructiveFlags & Flags<'tenant'>): Promise<void> {
  if (options.tenant === undefined) throw misused('missing --tenant <kid>');
  const kid = checkKid(options.tenant);
  const body = targetBody(options);
  await withContext(async (context) => {
    const by = await context.operator(kid);
    const { api } = (await context.services()).rights;
    const target = await api.findTarget(kid, body);
    await requireKnown(context, kid, target);
    if (options.dryRun === true) return printPlan(context.database, kid, target);
    await confirm(options, `this erases what tenant ${kid} holds about this person, and cannot be undone`);
    printReceipt(await api.eraseFor(by, body));
  });
}

const status = command(async ({ services }, receiptId: string) => {
  const { eraser } = (await services()).rights;
  const receipt = await eraser.status(receiptId);
  if (!receipt) throw notFound('no receipt with that id');
  printReceipt(receipt);
});

/** After what could be read. */
function nameUnreadable(receiptIds: readonly string[]): void {
  if (receiptIds.length === 0) return;
  const ids = receiptIds.join(', ');
  throw failed(`stored receipts cannot be read: ${ids}; restore a backup`);
}

const list = command(async ({ operator, services }, kid: string) => {
  await operator(kid);
  const { eraser } = (await services()).rights;
  const { receipts, unreadable } = await eraser.list(kid, MAX_LIST);
  printTable(receipts, receipts, {
    RECEIPT: 'receiptId',
    ERASED: 'erasedAt',
    BY: 'requestedBy',
    STATE: ({ scopes }) => erasureState(scopes),
  });
  nameUnreadable(unreadable);
});

const scrub = command(async (context, kid?: string) => {
  const { database, config, operator } = context;
  if (kid !== undefined) await operator(checkKid(kid));
  if (database.kind === 'sqlite') return resumeWith(context);
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
});

const resume = (): Promise<void> => withContext(resumeWith);

/** Of one that waits for `gpd erase scrub` everything else is done. */
const isHeldUp = ({ scopes }: ErasureReceipt): boolean =>
  scopes.some(({ scope, action }) => action === 'pending' && scope !== 'storage');

async function resumeWith({ services }: CommandContext): Promise<void> {
  const { eraser } = (await services()).rights;
  const { receipts, failures } = await eraser.resume();
  const open = receipts.filter(isHeldUp).length;
  const failed = failures.filter(({ kid }) => kid !== null).length;
  const all = receipts.length + failed;
  const nothing = failures.length === 0 ? ['no erasure is left to finish'] : [];
  print({ resumed: all, incomplete: open + failed }, () => [
    ...(all === 0 ? nothing : [`${receipts.length - open} of ${all} erasures are complete now`]),
    ...(open > 0 ? [HELD] : []),
  ]);
  if (open > 0) io().exitCode = EXIT.incomplete;
  const other = failures.find(({ error }) => !(error instanceof UnreadableErasure));
  if (other) throw other.error;
  nameUnreadable(
    failures.flatMap(({ error }) => (error instanceof UnreadableErasure ? [error.receiptId] : [])),
  );
}

export const ACTIONS: Actions = { '': erase, status, list, resume, scrub };
