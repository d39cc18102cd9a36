import { describe, expect, it } from 'vitest';
import { readPage } from './prose.ts';

/** Programs on the pages for integrators are those of the SDKs' READMEs, whose own tests run them. */

const LANGUAGES: Readonly<Record<string, string>> = { js: 'node', python: 'python', go: 'go', java: 'java' };

const blocksOf = (page: string): readonly (readonly [language: string, code: string])[] =>
  [...readPage(page).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => [
    language,
    code,
  ]);

/** The recipes, which test/package/webhook-recipes.test.ts runs. */
const FILES: readonly string[] = [
  ...readPage('docs/webhooks.md').matchAll(/^\*\*`[\w.]+`\*\*.*\n\n```\w+\n([\s\S]*?)^```$/gm),
].map(([, code = '']) => code);

describe.each(['docs/sdk.md', 'docs/webhooks.md'])('%s', (page) => {
  it('shows the programs of the READMEs, unchanged', () => {
    const programs = blocksOf(page).filter(
      ([language, code]) => LANGUAGES[language] !== undefined && !FILES.includes(code),
    );
    expect(programs.length).toBeGreaterThan(0);
    const strangers = programs.filter(([language, code]) => {
      const readme = readPage(`sdk/${LANGUAGES[language]}/README.md`);
      return !readme.includes(`\`\`\`${language}\n${code}\`\`\``);
    });
    expect(strangers).toEqual([]);
  });
});

describe('docs/webhooks.md', () => {
  it('has five recipes of at most 15 lines', () => {
    const lines = FILES.map((code) => code.split('\n').filter((line) => line.trim() !== '').length);
    expect(lines).toHaveLength(5);
    expect(Math.max(...lines)).toBeLessThanOrEqual(15);
  });
});

describe('docs/sdk.md', () => {
  it('has the set-up of the READMEs', () => {
    const [setUp = ['', '']] = blocksOf('docs/sdk.md').filter(([language]) => language === 'sh');
    expect(setUp[1]).toContain('gpd apikeys create');
    expect(readPage('sdk/node/README.md')).toContain(setUp[1]);
  });
});

describe('README.md', () => {
  it('is at most 120 lines', () => {
    expect(readPage('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(120);
  });
});
