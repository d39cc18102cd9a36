import { toldOnce } from '../../ingest/verdict/classify.ts';
import { isReconciled } from '../../ingest/verdict/verdict.ts';
import type { PeopleLanguage } from '../../lib/languages.ts';
import { PEOPLE_WORDS, type Speaker } from '../../lib/people/say.ts';
import type { Forgotten } from '../../schema/rights.ts';
import type { DsarDecision, DsarHead } from '../dsar/service.ts';

/** Words and formats of the templates of /my-data, in the language of their reader. */

type ContestOfPerson = DsarHead['contests'][number];

/** In UTC, because the server does not know the time zone; the script writes times in the browser's. */
function formatsOf(lang: PeopleLanguage) {
  const locale = lang === 'en' ? 'en-GB' : lang;
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' });
  const moment = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
  return {
    when: (iso: string, style?: string | null): string =>
      style === 'day' ? day.format(Date.parse(iso)) : `${moment.format(Date.parse(iso))} UTC`,
    countText: (count: number): string => count.toLocaleString(locale),
  };
}

/** Says who decided, and if it counts as a person's. */
function stateOf(decision: DsarDecision, contest: ContestOfPerson | null) {
  const isOverturned = contest?.outcome === 'overturned' && isReconciled(decision.class);
  return {
    isOverturned,
    isHuman: decision.overridden || isOverturned,
    isFree: !isReconciled(decision.class),
  };
}

export function forgottenText({ say }: Speaker, { shared, scopes }: Forgotten): string {
  const acts = scopes.filter(({ scope, action }) => scope !== 'backups' && action !== 'none');
  if (acts.length === 0) return say('forgotten.none');
  if (acts.every(({ action }) => action === 'retained')) return say('forgotten.kept');
  if (acts.some(({ action }) => action === 'retained')) return say('forgotten.some');
  const isDone = acts.every(({ action }) => action === 'erased');
  if (shared) return say(isDone ? 'forgotten.visit' : 'forgotten.visitPending');
  return say(isDone ? 'forgotten.device' : 'forgotten.devicePending');
}

export const pageWords = (speaker: Speaker) => ({
  ...formatsOf(speaker.lang),
  toldOnce,
  isReconciled,
  stateOf,
  isNamed: (contact: string): boolean => contact !== speaker.say('notice.noContact'),
  scriptWords: JSON.stringify(PEOPLE_WORDS[speaker.lang].SCRIPT),
});
