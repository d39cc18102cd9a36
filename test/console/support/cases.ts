import { REASON } from '../../support/constants.ts';
import type { Console, Visitor } from './console.ts';

/** A decision and the case that somebody filed of it. */
export async function createCase(site: Console, statement?: string, sub?: string) {
  const decided = await site.decide();
  const contestId = await site.contest(decided.requestId, decided.visitorId, statement, sub);
  return { ...decided, contestId, path: `/console/contests/${contestId}` };
}

export const versionOf = async (who: Visitor, path: string): Promise<string> =>
  /name="version" value="(\d+)"/.exec((await who.get(path)).text)?.[1] ?? '';

/** Sends the form of a ruling, as the page of the case has it. */
export async function resolveCase(who: Visitor, path: string, fields: Record<string, string> = {}) {
  const version = fields['version'] ?? (await versionOf(who, path));
  return who.act(`${path}/resolve`, { outcome: 'overturned', text: REASON, ...fields, version });
}
