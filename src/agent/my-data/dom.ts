/** Elements by text alone: nothing that came from outside is ever parsed as markup. */
export function el(
  name: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElement {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** A list of terms and what they are. */
export function facts(pairs: readonly (readonly [string, string | Node])[]): HTMLElement {
  return el(
    'dl',
    { class: 'facts' },
    ...pairs.flatMap(([term, value]) => [el('dt', {}, term), el('dd', {}, value)]),
  );
}
