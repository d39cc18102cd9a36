import { dueIn } from '../../console/words.ts';
import { findDecision } from '../../ingest/decisions-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { pagesBy } from '../../lib/collections.ts';
import { activeClaim, type Contest, outcomeText } from '../../rights/contests/contest.ts';
import { contestResponse } from '../../rights/contests/record.ts';
import { findContest, listContests } from '../../rights/contests/store.ts';
import type { Rights } from '../../rights/create-rights.ts';
import { describeDecision } from '../../rights/dsar/service.ts';
import { extensionSchema, OUTCOMES, reasonSchema, textSchema } from '../../schema/rights.ts';
import { tenantsSince } from '../../tenants/tenant-store.ts';
import { accountName, type CommandContext, command, withContext } from '../command.ts';
import { type Actions, REQUIRED } from '../define.ts';
import { misused, notFound, print, printTable, say, table } from '../output.ts';
import { checked, checkKid, confirm, type DestructiveFlags, type Flags } from '../run.ts';

const PAGE = 1000;

const list = command(async ({ database, services, operator }, options: Flags<'tenant', 'all'>) => {
  const { contestTexts } = (await services()).rights;
  const tenants = [...(await tenantsSince(database)).keys()];
  const wanted = options.tenant === undefined ? tenants : [(await operator(checkKid(options.tenant))).kid];
  const filter = options.all === true ? {} : { status: 'open' as const };
  const contests: Contest[] = [];
  for (const kid of wanted) {
    const read = (after: Contest | undefined) =>
      listContests(database, contestTexts, kid, { ...filter, after }, PAGE);
    for await (const page of pagesBy(PAGE, read)) contests.push(...page);
  }
  const shown = contests.map((contest) => ({ tenant: contest.kid, ...contestResponse(contest) }));
  const now = Date.now();
  if (shown.length === 0) return print(shown, () => ['no open contests']);
  printTable(shown, contests, {
    CONTEST: 'contestId',
    TENANT: 'kid',
    STATUS: 'status',
    OUTCOME: 'outcome',
    DUE: ({ status, dueAt }) => (status === 'open' ? dueIn(dueAt, now).text : ''),
    CLASS: 'class',
    'CLAIMED BY': (contest) => activeClaim(contest, now)?.label ?? '',
  });
});

async function requireContest(context: CommandContext, contestId: string): Promise<Contest> {
  const { contestTexts } = (await context.services()).rights;
  const contest = await findContest(context.database.read, contestTexts, { contestId });
  if (!contest) throw notFound('no contest with that id');
  return contest;
}

/** A ruling is about an id, not about the person who filed the contest. */
const SHARED =
  'gpd: warning: this id needs attestation: other devices look like it, and one ruling holds for all of them; if it is overturned, an automated one among them is freed too';

async function warnIfShared({ database }: CommandContext, { kid, requestId }: Contest): Promise<boolean> {
  const stored = await findDecision(database, kid, requestId);
  const shared = stored?.verdict.needsAttestation === true;
  if (shared) say(SHARED);
  return shared;
}

const show = command(async (context, contestId: string) => {
  const contest = await requireContest(context, contestId);
  await warnIfShared(context, contest);
  const stored = await findDecision(context.database, contest.kid, contest.requestId);
  const tenant = (await context.services()).tenants.find(contest.kid);
  const decision =
    stored && tenant
      ? describeDecision(
          { requestId: contest.requestId, verdict: stored.verdict, summary: null },
          tenant,
          contest,
        )
      : null;
  const answer = { tenant: contest.kid, ...contestResponse(contest), decision };
  print(answer, () => [
    ...table([
      ['contest', contest.contestId],
      ['tenant', contest.kid],
      ['status', contest.outcome ?? contest.status],
      ['filed', isoTime(contest.filedAt)],
      ['due', isoTime(contest.dueAt)],
      ...(contest.extendedFrom === null ? [] : [['extended from', isoTime(contest.extendedFrom)]]),
      ['decision', decision ? `${decision.classText} (score ${decision.suspectScore})` : 'deleted'],
    ]),
    '',
    contest.statement === null ? 'The person gave no statement.' : contest.statement,
    '',
    ...(decision?.rules.map(
      ({ id, kind, weight, text }) => `${id.padEnd(4)} ${kind}  ${weight.toFixed(2)}  ${text}`,
    ) ?? []),
    ...(decision ? ['', decision.whatWouldHaveChanged.text] : []),
  ]);
});

/** One change of a contest, as the person at this terminal. */
const act = command(
  async (
    context,
    contestId: string,
    work: (contests: ContestService, by: ActingOperator) => Promise<Contest>,
    said: (contest: Contest) => string,
  ) => {
    const { kid } = await requireContest(context, contestId);
    const { contests } = (await context.services()).rights.api;
    const after = await work(contests, await context.operator(kid));
    print({ tenant: after.kid, ...contestResponse(after) }, () => [said(after)]);
  },
);

type ContestService = Rights['api']['contests'];
type ActingOperator = Awaited<ReturnType<CommandContext['operator']>>;

async function extend(contestId: string, options: { readonly reason: string; readonly days: string }) {
  const { days, reason } = options;
  const extension = {
    days: checked(extensionSchema.shape.days, days, '--days: '),
    reason: checked(textSchema, reason, '--reason: '),
  };
  await act(
    contestId,
    (contests, by) => contests.extend(by, contestId, extension),
    ({ dueAt }) => `${contestId} is due by ${isoTime(dueAt)}`,
  );
}

async function ask(contestId: string, options: { readonly question: string }): Promise<void> {
  const question = checked(textSchema, options.question, '--question: ');
  await act(
    contestId,
    (contests, by) => contests.ask(by, contestId, question),
    () => `${contestId}: the person can now read the question`,
  );
}

async function claim(contestId: string): Promise<void> {
  await act(
    contestId,
    (contests, by) => contests.claim(by, contestId, accountName()),
    (contest) => `${contestId} is yours until ${isoTime(contest.claim?.until ?? 0)}`,
  );
}

async function resolve(contestId: string, options: DestructiveFlags & Flags<'outcome' | 'reason'>) {
  const outcome = OUTCOMES.find((name) => name === options.outcome);
  if (outcome === undefined) throw misused('missing --outcome <outcome>: upheld or overturned');
  const reason = reasonSchema.safeParse(options.reason ?? '');
  if (!reason.success) throw misused('--reason must have 20 to 4,000 characters, without control characters');
  await withContext(async (context) => {
    const contest = await requireContest(context, contestId);
    const { kid } = await context.tenant(contest.kid);
    const meaning = outcomeText(outcome, contest.class);
    const all = (await warnIfShared(context, contest)) ? ' for every device that looks like it' : '';
    if (options.dryRun === true) {
      const plan = { contestId, tenant: kid, status: contest.status, outcome, meaning, dryRun: true };
      return print(plan, () => [
        contest.status === 'resolved'
          ? `${contestId} is already resolved: ${contest.outcome}`
          : `would resolve ${contestId} as ${outcome}: ${meaning}`,
        'Nothing was changed.',
      ]);
    }
    await confirm(options, `this resolves the contest as ${outcome}${all} (${meaning}); it cannot be undone`);
    const ruling = { contestId, outcome, reason: reason.data, version: null } as const;
    const { contests } = (await context.services()).rights.api;
    const resolved = await contests.resolve(await context.operator(kid), ruling);
    print({ ...contestResponse(resolved), meaning }, () => [
      resolved.status === 'resolved'
        ? `${contestId} is resolved: ${outcome}; ${meaning}`
        : `${contestId}: proposed ${outcome}; a second reviewer must confirm it`,
    ]);
  });
}

export const ACTIONS: Actions = {
  list,
  show,
  claim,
  ask: [ask, { question: REQUIRED }],
  extend: [extend, { reason: REQUIRED, days: REQUIRED }],
  resolve,
};
