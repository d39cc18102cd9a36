import { doc } from '../doc.ts';

/** Elements without markup in strings: nothing that a policy or a Trusted Types rule could refuse. */

type Attributes = Readonly<Record<string, string | boolean | ((event: Event) => void)>>;

export type Child = Node | string | false | null;

/** Without what is left out by a condition. */
export const nodes = (children: readonly Child[]): (Node | string)[] =>
  children.filter((child) => child !== false && child !== null);

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = doc.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    // A click that a script made is nobody's choice.
    if (typeof value === 'function')
      element.addEventListener(name, (event) => (event.isTrusted ? value(event) : undefined));
    else if (value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...nodes(children));
  return element;
}

/** Fills in {name}. */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_whole, name: string) => values[name] ?? '');
}
