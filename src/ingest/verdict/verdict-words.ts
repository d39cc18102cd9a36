import type { PeopleLanguage } from '../../lib/languages.ts';
import { PEOPLE_WORDS } from '../../lib/people/say.ts';
import { fillWords } from '../../lib/people/words.ts';
import de from './words/de.json' with { type: 'json' };
import en from './words/en.json' with { type: 'json' };
import es from './words/es.json' with { type: 'json' };
import fr from './words/fr.json' with { type: 'json' };
import italian from './words/it.json' with { type: 'json' };
import pl from './words/pl.json' with { type: 'json' };

/** A verdict in the words of the person concerned. Answers of the API are in English. */

type VerdictWords = typeof en;
export type RuleId = keyof VerdictWords['rules'];

export const VERDICT_WORDS: Readonly<Record<PeopleLanguage, VerdictWords>> = {
  ...{ en, de, fr, es, pl },
  it: italian,
};

const isKeyOf = <T extends object>(words: T, key: PropertyKey): key is keyof T => Object.hasOwn(words, key);

/** Plain words for a rule id; a rule of an older policy has only its id. */
export function ruleText(id: string, language: PeopleLanguage = 'en'): string {
  const { rules, sentences } = VERDICT_WORDS[language];
  return isKeyOf(rules, id) ? rules[id] : fillWords(sentences.earlierRule, { id });
}

export function classText(name: string, language: PeopleLanguage = 'en'): string {
  const words = PEOPLE_WORDS[language].PAGE;
  const key = `class.${name}`;
  return isKeyOf(words, key) ? words[key] : name;
}

/** The text of a class within a sentence: in each of the languages it then begins with a small letter. */
function classWithin(name: string, language: PeopleLanguage): string {
  const text = classText(name, language);
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}

/** Quotes a class in a sentence for staff, who read English. */
export const quotedClass = (name: string): string => `“${classWithin(name, 'en')}”`;

/** The part of a `Counterfactual` that is put into words. */
interface Change {
  readonly decisive: readonly { readonly id: string; readonly class: string }[];
  readonly withoutAll: string | null;
}

/** Says in a sentence what would have changed the result. */
export function changeText({ decisive, withoutAll }: Change, language: PeopleLanguage = 'en'): string {
  const { sentences } = VERDICT_WORDS[language];
  if (decisive.length > 0) {
    return decisive
      .map((one) => {
        const sign = ruleText(one.id, language).replace(/\.$/, '');
        return fillWords(sentences.without, { sign, class: classWithin(one.class, language) });
      })
      .join(' ');
  }
  return withoutAll === null
    ? sentences.noChange
    : fillWords(sentences.noneAlone, { class: classWithin(withoutAll, language) });
}

/** Says who decided in place of the rules, and what the rules alone would have said. */
export const deciderText = (
  decider: 'reviewed' | 'signed' | 'door',
  classByRules: string,
  language: PeopleLanguage = 'en',
): string =>
  fillWords(VERDICT_WORDS[language].sentences[decider], { class: classWithin(classByRules, language) });
