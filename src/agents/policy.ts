import type { AgentAction, AgentPolicy, AgentRule, AgentStatus } from '../schema/agents.ts';
import { agentIdentity, directoryUrl } from './directory.ts';
import { isSurelyBelow, mayBeBelow, type PathReading, readPath, readRulePath, UNREAD } from './path.ts';
import type { AgentOutcome } from './reasons.ts';

/** A tenant's policy for agents: a table in which the first row that matches decides. */

export interface Decided {
  readonly action: AgentAction;
  /** The place of the row that matched, from 0; null: none did. */
  readonly row: number | null;
  /** The path of that row, by which requests are counted: it is the tenant's, and no visitor's. */
  readonly path: string;
  readonly rate: string | null;
}

const UNMATCHED: Decided = { action: 'observe', row: null, path: '/', rate: null };

/** The earlier name decides between two rows that may both concern a request. */
const STRICTNESS: readonly AgentAction[] = ['deny', 'require', 'rate', 'observe', 'allow'];

/**
 * The first row that matches. Where servers read the path in different ways, the strictest of the rows that
 * come first in some way.
 * @param target path and query as the client sent them; null: the proxy did not say
 */
export function decideByPolicy(policy: AgentPolicy, outcome: AgentOutcome, target: string | null): Decided {
  if (policy.length === 0) return UNMATCHED;
  const visited = target === null ? UNREAD : readPath(target);
  let decided: Decided | null = null;
  for (const [row, { rule, path, agent }] of compiled(policy).entries()) {
    if (!matchesStatus(rule, outcome) || (agent !== '*' && agent !== outcome.named)) continue;
    if (!mayBeBelow(path, visited)) continue;
    if (decided === null || strictnessOf(rule) < strictnessOf(decided))
      decided = { action: rule.action, row, path: rule.path, rate: rule.rate ?? null };
    if (isSurelyBelow(path, visited)) break;
  }
  return decided ?? UNMATCHED;
}

/** A row that lets a verified agent through or refuses it; `none` only takes such a row away. */
export interface AgentRow {
  readonly agent: string;
  readonly path: string;
  readonly action: 'allow' | 'deny' | 'none';
}

/** Puts the row at the top, in place of an earlier one that allowed or denied the same agent and path. */
export function withAgentRow(policy: AgentPolicy, { path, action, ...named }: AgentRow): AgentPolicy {
  const agent = identityOf(named);
  const otherRows = policy.filter((rule) => {
    const isOfAgent = identityOf(rule) === agent && rule.path === path;
    const isReplaced = rule.action === 'allow' || rule.action === 'deny';
    return !(isOfAgent && isReplaced && (rule.status ?? 'verified') === 'verified');
  });
  return action === 'none' ? otherRows : [{ agent, path, action }, ...otherRows];
}

const strictnessOf = ({ action }: Pick<Decided, 'action'>): number => STRICTNESS.indexOf(action);

interface CompiledRule {
  readonly rule: AgentRule;
  readonly path: PathReading;
  readonly agent: string;
}

const compiledPolicies = new WeakMap<AgentPolicy, readonly CompiledRule[]>();

/** A policy is read by each request, and its paths are the same each time. */
function compiled(policy: AgentPolicy): readonly CompiledRule[] {
  const found = compiledPolicies.get(policy);
  if (found) return found;
  const rules = policy.map((rule) => ({ rule, path: readRulePath(rule.path), agent: identityOf(rule) }));
  compiledPolicies.set(policy, rules);
  return rules;
}

/** The answer of an action to a request that it does not let pass. */
export const STATUS_OF = { allow: 204, observe: 204, deny: 403, require: 401, rate: 429 } as const;

/** @param wait the seconds that a rate makes the client wait */
export function passes({ action }: Decided, { status }: AgentOutcome, wait = 0): boolean {
  if (action === 'rate') return wait === 0;
  return action === 'allow' || action === 'observe' || (action === 'require' && status === 'verified');
}

/**
 * A kind of request, by which the hours are counted. Its agent has a key set here: a stranger cannot make
 * kinds.
 */
export interface AgentKind {
  readonly status: AgentStatus;
  readonly action: AgentAction;
  readonly isRefused: boolean;
  readonly isDry: boolean;
  readonly row: number | null;
  readonly path: string;
  readonly agent: string | null;
}

export function countedName(
  { status, named }: AgentOutcome,
  { action, row, path }: Decided,
  { isRefused, isDry }: Pick<AgentKind, 'isRefused' | 'isDry'>,
): string {
  return JSON.stringify([status, action, isRefused, isDry, row, path, named]);
}

export function kindOf(name: string): AgentKind {
  const [status, action, isRefused, isDry, row, path, agent] = JSON.parse(name) as never[];
  return { status, action, isRefused, isDry, row, path, agent } as unknown as AgentKind;
}

/** A row that names an agent and no status means the agent itself, never somebody who uses its name. */
const matchesStatus = ({ agent, status }: AgentRule, outcome: AgentOutcome): boolean =>
  outcome.status === (status ?? (agent === '*' ? outcome.status : 'verified'));

/** The schema lets only `*` and https URLs through. */
function identityOf({ agent }: Pick<AgentRule, 'agent'>): string {
  const directory = directoryUrl(agent);
  return directory === null ? agent : agentIdentity(directory);
}
