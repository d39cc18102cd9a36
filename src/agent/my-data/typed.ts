/** A text in the form of an objection outlives the token of the look-up that it was typed under. */

export type Typed = Readonly<Record<'statement' | 'email', string>>;

interface Keeper {
  readonly result: HTMLElement;
  typed: Typed | null;
}

interface Fields {
  readonly statement: HTMLTextAreaElement;
  readonly email: HTMLInputElement;
}

function fieldsIn({ result }: Keeper): Fields | null {
  const statement = result.querySelector<HTMLTextAreaElement>('textarea[name="statement"]');
  const email = result.querySelector<HTMLInputElement>('input[name="email"]');
  return statement && email && { statement, email };
}

/** Before the form is replaced. */
export function keepTyped(page: Keeper): void {
  const fields = fieldsIn(page);
  if (!fields) return;
  const typed = { statement: fields.statement.value, email: fields.email.value };
  page.typed = typed.statement === '' && typed.email === '' ? null : typed;
}

/** @returns whether there was a text, and a form for it */
export function fillTyped(page: Keeper): boolean {
  const fields = fieldsIn(page);
  if (!fields || page.typed === null) return false;
  fields.statement.value = page.typed.statement;
  fields.email.value = page.typed.email;
  const folded = fields.statement.closest('details');
  if (folded) folded.open = true;
  return true;
}
