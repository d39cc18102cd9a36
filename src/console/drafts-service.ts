import type { Database } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import { type ContestWords, NO_WORDS } from '../rights/contests/contest-text.ts';
import type { DraftPort, Staff } from './ports.ts';
import { deleteDrafts, draftsOf, saveDraft } from './session-store.ts';

/** What staff typed and did not send, for a day: sealed as the words of its contest are. */

export interface DraftDeps {
  readonly database: Database;
  readonly words: ContestWords;
  readonly clock: Clock;
}

export function makeDraftPort({ database, words, clock }: DraftDeps): DraftPort {
  /** Null for what a node before this one wrote in the clear, or under a key that is gone: it lived for a day at most. */
  function open(kid: string, contestId: string, sealed: string): string | null {
    try {
      return words.open(kid, contestId, sealed).reason;
    } catch {
      return null;
    }
  }
  return {
    async save({ kid, ref }, { contestId, kind, outcome, text }) {
      if (text === '') {
        await deleteDrafts(database, kid, ref, contestId, [kind]);
        return false;
      }
      const sealed = words.seal(kid, contestId, { ...NO_WORDS, reason: text }) ?? '';
      return saveDraft(database, { kid, actor: ref, contestId, kind, outcome, text: sealed, at: clock() });
    },
    async of({ kid, ref }: Staff, contestId) {
      const drafts = await draftsOf(database, kid, ref, contestId);
      return drafts.flatMap(({ kind, outcome, text: sealed }) => {
        const text = open(kid, contestId, sealed);
        return text === null ? [] : [{ kind, outcome, text }];
      });
    },
    drop: ({ kid, ref }, contestId, kinds) => deleteDrafts(database, kid, ref, contestId, kinds),
  };
}
