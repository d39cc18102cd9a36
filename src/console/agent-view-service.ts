import type { CardClaims } from '../agents/card.ts';
import { agentIdentity } from '../agents/directory.ts';
import { type AgentRow, kindOf, withAgentRow } from '../agents/policy.ts';
import { AGENT_REASONS } from '../agents/reasons.ts';
import { listDirectories } from '../agents/store.ts';
import { findDecision } from '../ingest/decisions-store.ts';
import { DAY } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import type { Tx } from '../rights/contests/service.ts';
import { readTallies } from '../rights/tally-store.ts';
import { agentPolicySchema } from '../schema/agents.ts';
import { requestIdSchema } from '../schema/responses.ts';
import type { TenantSettings } from '../tenants/settings.ts';
import { changeSettings, createTenantStore } from '../tenants/tenant-store.ts';
import { actorOf, type Context, type Staff } from './context-service.ts';
import { roughOf } from './small-counts.ts';

/** Reads the data of the page about agents, and changes their policy. */

const SHOWN = 200;
const SHOWN_SETS = 100;

/** Requests of the last 24 hours by kind, the most frequent first. */
async function readKinds({ database, clock, config }: Context, { kid }: Staff) {
  const sums = new Map<string, number>();
  for (const { name, n } of await readTallies(database, kid, 'agent', clock() - DAY))
    sums.set(name, (sums.get(name) ?? 0) + Number(n));
  const rows = [...sums].map(([name, n]) => ({ ...kindOf(name), n })).sort((a, b) => b.n - a.n);
  return rows.slice(0, SHOWN).map((row) => ({
    ...row,
    // An agent is a program, and everyone else may be a person.
    count: row.status === 'verified' ? row.n.toLocaleString('en') : roughOf(row.n, config.k_anonymity_floor),
  }));
}

/** A refusal at the door by its number; null: nobody searched. */
export async function readCase({ database }: Context, { kid }: Staff, text: unknown) {
  if (typeof text !== 'string' || text === '') return null;
  const requestId = requestIdSchema.safeParse(text.trim());
  const decision = requestId.success ? await findDecision(database, kid, requestId.data) : null;
  const { door, signature, declaredAgentId, decidedAt } = decision?.verdict ?? {};
  if (!door || decidedAt === undefined) return { text, found: null };
  const reason = signature?.reason ?? null;
  const because = reason === null ? null : AGENT_REASONS[reason][1];
  return { text, found: { ...door, ...signature, because, agent: declaredAgentId, decidedAt } };
}

export async function readAgents(context: Context, staff: Staff) {
  const { database } = context;
  const [kinds, directories, tenant] = await Promise.all([
    readKinds(context, staff),
    listDirectories(database),
    // A process hears of a changed setting a second later, and this page shows it at once.
    createTenantStore(database).get(staff.kid),
  ]);
  const settings = tenant?.settings;
  return {
    kinds,
    rules: settings?.['agents.policy'] ?? [],
    isDry: settings?.['agents.dryRun'] === true,
    directories: directories.slice(0, SHOWN_SETS).map((one) => ({
      ...one,
      agent: agentIdentity(one.url),
      cardLines: cardLines(one.card?.says),
    })),
  };
}

const TRIGGERS = { fetcher: 'comes when its user asks', crawler: 'scans without a user' } as const;

const cardLines = (says: CardClaims | null | undefined): readonly string[] =>
  says
    ? [says.name, says.page, ...says.contacts, says.trigger && TRIGGERS[says.trigger], says.purpose].filter(
        (line) => line !== null,
      )
    : [];

/** Makes the tenant's policy dry, or puts it in force. The audit log says who did. */
export async function switchDryRun(
  { database, clock }: Context,
  staff: Staff,
  isDry: boolean,
): Promise<void> {
  const by = { ...actorOf(staff), at: clock() };
  const saved = await createTenantStore(database).saveSettings(
    staff.kid,
    (before) => ({ ...before, 'agents.dryRun': isDry }),
    by,
  );
  if (!saved) throw new Refusal('not-found');
}

/**
 * Writes a row of the policy for one agent at its top, within a transaction. The audit log says who did.
 * @throws {Refusal} `invalid-request`, with the reason; `not-found`
 */
export async function writeAgentRow(tx: Tx, staff: Staff, row: AgentRow, at: number): Promise<void> {
  const change = (before: TenantSettings): TenantSettings => {
    const changed = agentPolicySchema.safeParse(withAgentRow(before['agents.policy'], row));
    if (!changed.success)
      throw new Refusal('invalid-request', { details: changed.error.issues.map(({ message }) => message) });
    return { ...before, 'agents.policy': changed.data };
  };
  const saved = await changeSettings(tx, staff.kid, change, { ...actorOf(staff), at });
  if (!saved) throw new Refusal('not-found');
}

export const saveAgentRow = ({ database, clock }: Context, staff: Staff, row: AgentRow): Promise<void> =>
  database.transaction((tx) => writeAgentRow(tx, staff, row, clock()));
