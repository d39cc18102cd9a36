import { reasonSchema } from '../schema/rights.ts';
import { appendTemplate } from './form.ts';
import type { Draft } from './session-store.ts';

/** The reason of a ruling: its templates, and which texts may be stored. */

/** The place in a template that its reviewer must fill. */
export const GAP = '[…]';

/** Beginnings of a reason. A reviewer must complete them and choose the ruling. */
export const TEMPLATES = [
  {
    id: 'tool',
    name: 'An assistive tool',
    text: 'The sign that weighed most comes from a tool that a person uses, not from a program in a person’s place: ',
  },
  {
    id: 'shared',
    name: 'Identical devices',
    text: 'The rules that fired describe many identical devices. What you say about your own use matches the other decisions: ',
  },
  {
    id: 'agreed',
    name: 'Explained by the person',
    text: 'Your statement explains what the rules took for automation, and the other decisions agree: ',
  },
  {
    id: 'driven',
    name: 'Driven by a script',
    text: 'Several strong signs agree that a program drove this browser, and nothing in the statement explains them: ',
  },
] as const;

const TEXTS: readonly string[] = TEMPLATES.map(({ text }) => text);
const WITH_GAP = TEXTS.map((text) => text + GAP);

/** Adds a template with its gap to what was typed. An unknown id changes nothing. */
export function startFromTemplate(typed: Draft | null, id: unknown): Draft | null {
  const template = TEMPLATES.find((one) => one.id === id);
  if (!template) return typed;
  const text = appendTemplate(typed?.text ?? '', template.text + GAP, [...WITH_GAP, ...TEXTS]);
  return { kind: 'resolve', text, outcome: typed?.outcome ?? null };
}

export const isReason = (text: string): boolean => reasonSchema.safeParse(text).success;

/**
 * A reason needs 20 characters that its author wrote: those of a template or of the colleague's reason do not
 * count.
 * @param colleaguesReason null if no colleague has proposed
 * @returns the key of a problem; null if the text may be stored
 */
export function findReasonProblem(text: string, colleaguesReason: string | null): string | null {
  if (!isReason(text)) return 'reason';
  const ownText = colleaguesReason === null ? text : text.replaceAll(colleaguesReason.trim(), '');
  if (!isReason(ownText)) return 'copied';
  const withoutTemplates = TEXTS.reduce((rest, one) => rest.replaceAll(one.trim(), ''), ownText);
  if (!isReason(withoutTemplates.replaceAll(GAP, ''))) return 'template';
  return text.includes(GAP) ? 'gap' : null;
}
