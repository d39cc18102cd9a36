import { planErasure } from '../../rights/erase/plan-service.ts';
import { UnreadableErasure } from '../../rights/erase/receipts-store.ts';
import { KEEP_NOTHING } from '../../rights/erase/service.ts';
import type { ErasureReceipt } from '../../schema/rights.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { CommandFailed, EXIT, misused, print, printTable, table } from '../output.ts';
import { type RightsContext, type TargetOptions, targetBody, withRights } from '../rights-context.ts';
import { checkKid, confirm, type DestructiveFlags } from '../run.ts';

const MAX_LIST = 1000;

/** Rows are gone at once; bytes are held by whoever reads the files. */
const HELD =
  'Another program reads the database: end it, or the disk is too full to rewrite it; see docs/operate/erasure-incomplete.md.';

interface EraseOptions extends TargetOptions, DestructiveFlags {
  readonly tenant?: string;
}

function requireTenantOption(options: { readonly tenant?: string }): string {
  if (options.tenant === undefined) throw misused('missing --tenant <kid>');
  return checkKid(options.tenant);
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
          'Not complete yet: rows remain, or the file is not searched or rewritten yet. `gpd erase resume` finishes it now.',
        ]
      : []),
  ]);
  if (receipt.incomplete) io().exitCode = EXIT.incomplete;
}

/** An erasure may spend what the disk keeps for it. */
const ERASING = { mayOpenReserve: true } as const;

async function erase(options: EraseOptions): Promise<void> {
  const kid = requireTenantOption(options);
  const body = targetBody(options);
  const run = async ({ api, store, operatorOf }: RightsContext): Promise<void> => {
    const by = operatorOf(kid);
    const target = await api.findTarget(kid, body);
    if (options.dryRun === true) {
      const planned = await planErasure(store.database, { kid, target, keep: KEEP_NOTHING });
      const decisions = planned.decisions?.erased ?? 0;
      const consent = target.principal !== null;
      const plan = { tenant: kid, dryRun: true, devices: target.durables.length, decisions, consent };
      return print(plan, () => [
        `would erase ${plan.devices} device(s) with ${decisions} decision(s)${consent ? ' and shred the consent record' : ''}`,
        'Nothing was changed.',
      ]);
    }
    await confirm(options, `this erases what tenant ${kid} holds about this person, and cannot be undone`);
    printReceipt(await api.eraseFor(by, body));
  };
  await withRights(run, ERASING);
}

async function status(receiptId: string): Promise<void> {
  await withRights(async ({ eraser }) => {
    const receipt = await eraser.status(receiptId);
    if (!receipt) throw new CommandFailed('notFound', 'no receipt with that id');
    printReceipt(receipt);
  });
}

/** After what could be read. */
function nameUnreadable(receiptIds: readonly string[]): void {
  if (receiptIds.length === 0) return;
  const ids = receiptIds.join(', ');
  throw new CommandFailed('failure', `stored receipts cannot be read: ${ids}; restore a backup`);
}

async function list(kid: string): Promise<void> {
  await withRights(async ({ eraser, operatorOf }) => {
    operatorOf(kid);
    const { receipts, unreadable } = await eraser.list(kid, MAX_LIST);
    printTable(receipts, receipts, {
      RECEIPT: ({ receiptId }) => receiptId,
      ERASED: ({ erasedAt }) => erasedAt,
      BY: ({ requestedBy }) => requestedBy,
      STATE: ({ incomplete }) => (incomplete ? 'incomplete' : 'complete'),
    });
    nameUnreadable(unreadable);
  });
}

async function resume(): Promise<void> {
  await withRights(async ({ eraser, held }) => {
    const { receipts: resumed, failures } = await eraser.resume();
    const receipts = [...resumed, ...(await held.resume())];
    const open = receipts.filter(({ incomplete }) => incomplete).length;
    const failed = failures.filter(({ kid }) => kid !== null).length;
    const all = receipts.length + failed;
    const nothing = failures.length === 0 ? ['every erasure is complete'] : [];
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
  });
}

export const ACTIONS: Actions = { '': erase, status, list, resume };
