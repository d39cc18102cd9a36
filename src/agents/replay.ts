import { SECOND } from '../lib/clock.ts';
import type { AgentPolicy, RecordedRequest } from '../schema/agents.ts';
import { type HostJudge, judgeAtHost, requestAt } from './host.ts';
import { decideByPolicy, passes, STATUS_OF } from './policy.ts';
import type { AgentOutcome } from './reasons.ts';

/** Answers a recorded day again by another policy; nothing is written. */

/** Requests of one kind that would get another answer. */
export interface Change {
  /** The identity of a verified agent; null: nobody is proven. */
  readonly agent: string | null;
  readonly status: AgentOutcome['status'];
  /** The first segment of the path. */
  readonly path: string;
  readonly before: number;
  readonly after: number;
  readonly requests: number;
}

export function createReplay(judge: Omit<HostJudge, 'claimNonce' | 'discover'>, policy: AgentPolicy) {
  const nonces = new Set<string>();
  const windows = new Map<string, number>();
  const changes = new Map<string, Change>();
  let total = 0;
  const claimNonce = ({ nonce }: { readonly nonce: string }): Promise<boolean> => {
    const { size } = nonces;
    return Promise.resolve(nonces.add(nonce).size > size);
  };

  /** Counts in fixed windows, as the door does on one node. */
  function isOver(key: string, rate: string, at: number): boolean {
    const [points = 0, seconds = 1] = rate.split('/').map(Number);
    const window = `${key} ${Math.floor(at / (seconds * SECOND))}`;
    const count = (windows.get(window) ?? 0) + 1;
    windows.set(window, count);
    return count > points;
  }

  return {
    async add({ at, answered = 'observe', ...described }: RecordedRequest): Promise<void> {
      total += 1;
      // A proxy's log writes an empty text for a header that was not there.
      const headers = Object.fromEntries(Object.entries(described.headers).filter(([, text]) => text !== ''));
      const request = { ...requestAt({ ...described, headers }), requestId: String(total) };
      const outcome = await judgeAtHost({ ...judge, claimNonce }, request, at);
      const decided = decideByPolicy(policy, outcome, request.target);
      // A recording has no address of a client, unless a proxy wrote it.
      const client = outcome.agent ?? `client ${request.headers['x-forwarded-for']?.toString()}`;
      const wait = decided.rate !== null && isOver(`${decided.row} ${client}`, decided.rate, at) ? 1 : 0;
      const after = passes(decided, outcome, wait) ? 204 : STATUS_OF[decided.action];
      const before = typeof answered === 'number' ? answered : STATUS_OF[answered];
      if (before === after) return;
      const path = `/${request.target.split(/[/?]/)[1] ?? ''}`;
      const kind = { agent: outcome.agent, status: outcome.status, path, before, after };
      const key = JSON.stringify(kind);
      changes.set(key, { ...kind, requests: (changes.get(key)?.requests ?? 0) + 1 });
    },
    /** The kinds with most requests first. */
    result() {
      const sorted = [...changes.values()].sort((a, b) => b.requests - a.requests);
      return { total, changed: sorted.reduce((sum, { requests }) => sum + requests, 0), changes: sorted };
    },
  };
}
