import { orElse } from '../lib/or-else.ts';
import { type ContestTexts, NO_TEXTS } from '../rights/contests/contest-text.ts';
import type { Context } from './context.ts';
import { type Draft, deleteDrafts, draftsOf, saveDraft } from './session-store.ts';
import type { Staff } from './staff.ts';

/** What staff typed and did not send, for a day: encrypted as the words of its contest are. */

type Author = Pick<Staff, 'kid' | 'ref'>;

/** Four times what a reason takes. */
const MAX_KEPT = 16_000;

/** An empty text takes away what was kept. @returns whether it is kept: not of a contest that is not there */
async function keepDraft(context: Context, by: Author, contestId: string, draft: Draft) {
  const { database, contestTexts, clock } = context;
  const { kid, ref } = by;
  const { kind, outcome, text } = draft;
  if (text === '') {
    await deleteDrafts(database, { kid, actor: ref, contestId }, [kind]);
    return false;
  }
  const ciphertext = contestTexts.encrypt(kid, contestId, { ...NO_TEXTS, reason: text }) ?? '';
  return saveDraft(database, { kid, actor: ref, contestId, kind, outcome, text: ciphertext, at: clock() });
}

/** @returns whether all that was typed is kept */
export async function keepTyped(
  context: Context,
  by: Author,
  contestId: string,
  typed: readonly (Draft | null)[],
): Promise<boolean> {
  let kept = true;
  for (const one of typed) {
    if (one === null) continue;
    const fits = one.text.length <= MAX_KEPT;
    const saved = fits && (await keepDraft(context, by, contestId, one));
    if (!saved && one.text !== '') kept = false;
  }
  return kept;
}

/** Null for what cannot be opened, as under a key that is gone: a draft lives for a day at most. */
const openDraft = (
  contestTexts: ContestTexts,
  kid: string,
  contestId: string,
  ciphertext: string,
): string | null => orElse(() => contestTexts.decrypt(kid, contestId, ciphertext).reason, null);

export async function readDrafts(
  { database, contestTexts }: Context,
  { kid, ref }: Author,
  contestId: string,
): Promise<readonly Draft[]> {
  const drafts = await draftsOf(database, kid, ref, contestId);
  return drafts.flatMap((draft) => {
    const text = openDraft(contestTexts, kid, contestId, draft.text);
    return text === null ? [] : [{ ...draft, text }];
  });
}
