import axeCore from 'axe-core';
import type { Page } from 'playwright-core';

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** @returns the violations that axe finds, one line per element */
export async function axe(page: Page): Promise<string[]> {
  // The script is injected by the protocol, because the policy of the page allows no foreign script.
  await page.evaluate(axeCore.source);
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })`,
  )) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}
