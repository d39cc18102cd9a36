import type { Command } from 'commander';
import { dueIn } from '../../console/words.ts';
import { findDecision } from '../../ingest/decisions-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { pagesBy } from '../../lib/collections.ts';
import { activeClaim, type Contest, outcomeText } from '../../rights/contests/contest.ts';
import { caseRecord, contestResponse } from '../../rights/contests/record.ts';
import { findContest, listContests } from '../../rights/contests/store.ts';
import type { Rights } from '../../rights/create-rights-service.ts';
import { describeDecision } from '../../rights/dsar/service.ts';
import { extensionSchema, OUTCOMES, reasonSchema, textSchema } from '../../schema/rights.ts';
import { readCreationTimes } from '../../tenants/tenant-store.ts';
import {
  accountName,
  addCommand,
  type CommandContext,
  checkKid,
  checkOneOf,
  checkValue,
  DRY_RUN,
  type Flags,
  YES,
} from '../command-service.ts';
import {
  alignColumns,
  confirm,
  type DestructiveFlags,
  misused,
  notFound,
  print,
  printTable,
  say,
} from '../io-service.ts';

export function define(contests: Command): void {
  addCommand(contests, 'list', list, {
    about: 'list open contests, most urgent first',
    example: 'gpd contests list --tenant shop --all',
  })
    .option('--tenant <kid>', 'only this tenant')
    .option('--all', 'include resolved contests');
  addCommand(contests, 'show', show, {
    about: 'show a contest and explain its decision',
    example: 'gpd contests show con_01KAY0',
  }).argument('<contest>', 'id of the contest');
  addCommand(contests, 'claim', claim, {
    about: 'claim a contest for an hour',
    example: 'gpd contests claim con_01KAY0',
  }).argument('<contest>', 'id of the contest');
  addCommand(contests, 'ask', ask, {
    about: 'ask the person a question',
    example: "gpd contests ask con_01KAY0 --question 'Do you use a password manager?'",
  })
    .argument('<contest>', 'id of the contest')
    .requiredOption('--question <text>', 'up to 4,000 characters');
  addCommand(contests, 'extend', extend, {
    about: 'extend the due date, once; the person can read why',
    example: "gpd contests extend con_01KAY0 --days 14 --reason 'We asked your provider for its records.'",
  })
    .argument('<contest>', 'id of the contest')
    .requiredOption('--reason <text>', 'why, for the person who contested')
    .requiredOption('--days <n>', 'how many more days; rights.profile sets the maximum (61 at most)');
  addCommand(contests, 'acknowledge', acknowledge, {
    about: 'tell the person that their complaint has arrived (rights.profile uk)',
    example: 'gpd contests acknowledge con_01KAY0',
  }).argument('<contest>', 'id of the complaint');
  addCommand(contests, 'answer', answerComplaint, {
    about: 'end a complaint and tell the person its outcome (rights.profile uk)',
    example: "gpd contests answer con_01KAY0 --outcome 'You were right: we have erased the address.'",
  })
    .argument('<contest>', 'id of the complaint')
    .requiredOption('--outcome <text>', 'what you found and did, for the person; 20 to 4,000 characters');
  addCommand(contests, 'resolve', resolve, {
    about: 'decide a contest',
    example:
      "gpd contests resolve con_01KAY0 --outcome overturned --reason 'A colleague spoke to you on the phone.'",
  })
    .argument('<contest>', 'id of the contest')
    .requiredOption('--outcome <outcome>', 'upheld or overturned')
    .requiredOption('--reason <text>', 'why, for the person who contested; 20 to 4,000 characters')
    .option(...DRY_RUN)
    .option(...YES);
}

const PAGE = 1000;

async function list({ services, operator, open }: CommandContext, options: Flags<'tenant', 'all'>) {
  const { database } = await open();
  const { contestTexts } = (await services()).rights;
  const tenants = [...(await readCreationTimes(database)).keys()];
  const kids = options.tenant === undefined ? tenants : [(await operator(checkKid(options.tenant))).kid];
  const filter = options.all === true ? {} : { status: 'open' as const };
  const contests: Contest[] = [];
  for (const kid of kids) {
    const readPage = (after: Contest | undefined) =>
      listContests(database, contestTexts, kid, { ...filter, after }, PAGE);
    for await (const page of pagesBy(PAGE, readPage)) contests.push(...page);
  }
  const shown = contests.map((contest) => ({
    tenant: contest.kid,
    kind: contest.kind,
    ...caseRecord(contest),
  }));
  const now = Date.now();
  printTable(
    contests,
    options.all === true
      ? 'no contests; `gpd rights notice` prints what tells people that they may object'
      : 'no open contests; `gpd contests list --all` lists the resolved ones',
    {
      CONTEST: 'contestId',
      TENANT: 'kid',
      KIND: 'kind',
      STATUS: (contest) => caseRecord(contest).status,
      OUTCOME: 'outcome',
      DUE: ({ status, dueAt }) => (status === 'open' ? dueIn(dueAt, now).text : ''),
      CLASS: 'class',
      'CLAIMED BY': (contest) => activeClaim(contest, now)?.label ?? '',
    },
    shown,
  );
}

async function requireContest(context: CommandContext, contestId: string): Promise<Contest> {
  const { database, rights } = await context.services();
  const contest = await findContest(database.read, rights.contestTexts, { contestId });
  if (!contest) throw notFound('no contest with that id');
  return contest;
}

/** A ruling applies to a device id, not only to the person who filed the contest. */
const SHARED_WARNING =
  'gpd: warning: this id needs attestation: other devices look like it, and one ruling holds for all of them; if it is overturned, an automated one among them is freed too';

async function warnIfShared({ open }: CommandContext, { kid, requestId }: Contest): Promise<boolean> {
  const { database } = await open();
  const stored = await findDecision(database, kid, requestId);
  const isShared = stored?.verdict.needsAttestation === true;
  if (isShared) say(SHARED_WARNING);
  return isShared;
}

async function show(context: CommandContext, contestId: string): Promise<void> {
  const contest = await requireContest(context, contestId);
  await warnIfShared(context, contest);
  const { database, tenants } = await context.services();
  const stored = await findDecision(database, contest.kid, contest.requestId);
  const tenant = tenants.find(contest.kid);
  const decision =
    stored && tenant
      ? describeDecision(
          { requestId: contest.requestId, verdict: stored.verdict, summary: null },
          tenant,
          contest,
        )
      : null;
  const record = caseRecord(contest);
  const answer = { tenant: contest.kid, kind: contest.kind, ...record, decision };
  print(answer, () => [
    ...alignColumns([
      [contest.kind, contest.contestId],
      ['tenant', contest.kid],
      ['status', contest.outcome ?? record.status],
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
}

type ContestService = Rights['api']['contests'];
type ActingOperator = Awaited<ReturnType<CommandContext['operator']>>;

/** Changes a contest in the name of the person at this terminal. */
async function change(
  context: CommandContext,
  contestId: string,
  work: (contests: ContestService, by: ActingOperator) => Promise<Contest>,
  messageOf: (contest: Contest) => string,
): Promise<void> {
  const { kid } = await requireContest(context, contestId);
  const { contests } = (await context.services()).rights.api;
  const after = await work(contests, await context.operator(kid));
  print({ tenant: after.kid, ...caseRecord(after) }, () => [messageOf(after)]);
}

async function extend(
  context: CommandContext,
  contestId: string,
  { days, reason }: { readonly reason: string; readonly days: string },
): Promise<void> {
  const extension = {
    days: checkValue(extensionSchema.shape.days, days, `--days ${days}: `),
    reason: checkValue(textSchema, reason, '--reason: '),
  };
  await change(
    context,
    contestId,
    (contests, by) => contests.extend(by, contestId, extension),
    ({ dueAt }) => `${contestId} is due by ${isoTime(dueAt)}`,
  );
}

async function ask(context: CommandContext, contestId: string, options: { readonly question: string }) {
  const question = checkValue(textSchema, options.question, '--question: ');
  await change(
    context,
    contestId,
    (contests, by) => contests.ask(by, contestId, question),
    () => `${contestId}: the person can now read the question`,
  );
}

async function acknowledge(context: CommandContext, contestId: string): Promise<void> {
  await change(
    context,
    contestId,
    (contests, by) => contests.acknowledge(by, contestId),
    () => `${contestId} is acknowledged; tell the person the outcome without undue delay`,
  );
}

async function answerComplaint(
  context: CommandContext,
  contestId: string,
  options: { readonly outcome: string },
) {
  const outcome = checkValue(reasonSchema, options.outcome, '--outcome: ');
  await change(
    context,
    contestId,
    (contests, by) => contests.answerComplaint(by, contestId, outcome),
    () => `${contestId} is answered: the person can now read the outcome`,
  );
}

async function claim(context: CommandContext, contestId: string): Promise<void> {
  await change(
    context,
    contestId,
    (contests, by) => contests.claim(by, contestId, accountName()),
    (contest) => `${contestId} is yours until ${isoTime(contest.claim?.until ?? 0)}`,
  );
}

async function resolve(
  context: CommandContext,
  contestId: string,
  options: DestructiveFlags & { readonly outcome: string; readonly reason: string },
): Promise<void> {
  const outcome = checkOneOf('--outcome', options.outcome, OUTCOMES, 'upheld or overturned');
  const reason = reasonSchema.safeParse(options.reason);
  if (!reason.success) throw misused('--reason must have 20 to 4,000 characters, without control characters');
  const contest = await requireContest(context, contestId);
  const { kid } = await context.tenant(contest.kid);
  const meaning = outcomeText(outcome, contest.class);
  const effectText = (await warnIfShared(context, contest)) ? ' for every device that looks like it' : '';
  if (options.dryRun === true) {
    const plan = { contestId, tenant: kid, status: contest.status, outcome, meaning, dryRun: true };
    return print(plan, () => [
      contest.status === 'resolved'
        ? `${contestId} is already resolved: ${contest.outcome}`
        : `would resolve ${contestId} as ${outcome}: ${meaning}`,
      'Nothing was changed.',
    ]);
  }
  await confirm(
    options,
    `this resolves the contest as ${outcome}${effectText} (${meaning}); it cannot be undone`,
  );
  const ruling = { contestId, outcome, reason: reason.data, version: null } as const;
  const { contests } = (await context.services()).rights.api;
  const resolved = await contests.resolve(await context.operator(kid), ruling);
  print({ ...contestResponse(resolved), meaning }, () => [
    resolved.status === 'resolved'
      ? `${contestId} is resolved: ${outcome}; ${meaning}`
      : `${contestId}: proposed ${outcome}; a second reviewer must confirm it`,
  ]);
}
