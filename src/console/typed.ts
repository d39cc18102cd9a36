import { OUTCOMES } from '../schema/rights.ts';
import type { Form } from './form.ts';
import type { Draft } from './session-store.ts';

/** What somebody has typed on the page of a case. Its one form sends all of it with every button, so that no button loses any. */

export type TypedByKind = Readonly<Record<Draft['kind'], Draft | null>>;

const CASE = /^\/contests\/(con_\w+)\/(?:claim|release|ask|extend|resolve|template)$/;

/** The contest that a form of its page was sent to. */
export function contestOfPath(path: string): string | null {
  return CASE.exec(path)?.[1] ?? null;
}

/** Null: the form has no such field. A question sent to its own address comes in the field `text`. */
export function typedOf(form: Form, path: string): TypedByKind {
  const alone = path.endsWith('/ask') && !form.has('question');
  const [reason, question] = alone ? [undefined, form.get('text')] : [form.get('text'), form.get('question')];
  const extension = form.get('extension');
  const outcome = OUTCOMES.find((name) => name === form.get('outcome')) ?? null;
  return {
    resolve: reason === undefined ? null : { kind: 'resolve', text: reason.toWellFormed(), outcome },
    ask: question === undefined ? null : { kind: 'ask', text: question.toWellFormed(), outcome: null },
    extend:
      extension === undefined ? null : { kind: 'extend', text: extension.toWellFormed(), outcome: null },
  };
}

/** A template begins a reason. What was typed stays above it; another template that nobody went on from makes room. */
export function withTemplate(text: string, wanted: string, templates: readonly string[]): string {
  const bare = text.trimEnd();
  const untouched = templates.map((one) => one.trim()).find((one) => bare.endsWith(one));
  const own = untouched === undefined ? bare : bare.slice(0, -untouched.length).trimEnd();
  return own === '' ? wanted : `${own}\n\n${wanted}`;
}
