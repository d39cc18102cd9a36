import { describe, expect, it } from 'vitest';
import phrases from './phrases.json' with { type: 'json' };
import { listPages, readPage, sourceWords, withoutCode } from './prose.ts';

/** docs/style.md: phrases that make readers go back. */

const PATTERNS = phrases.phrases.map(([pattern = '']) => new RegExp(pattern, 'gi'));

function found(text: string): readonly string[] {
  const plain = withoutCode(text);
  return PATTERNS.flatMap((pattern) => [...plain.matchAll(pattern)].map(([match]) => match.toLowerCase()));
}

const areaOf = (page: string): string => (page.startsWith('docs/adr/') ? 'docs/adr' : page);

describe('docs/style.md', () => {
  it('each page has as many of the phrases as phrases.json allows: lower the number when it falls', () => {
    const counted: Record<string, readonly string[]> = {};
    for (const page of listPages()) {
      const area = areaOf(page);
      counted[area] = [...(counted[area] ?? []), ...found(readPage(page))];
    }
    const areasWithHits = Object.entries(counted).filter(([, hits]) => hits.length > 0);
    const allowed: Readonly<Record<string, number>> = phrases.allowed;
    const unexpected = areasWithHits.filter(([area, hits]) => hits.length !== (allowed[area] ?? 0));
    const clean = Object.keys(allowed).filter((area) => (counted[area] ?? []).length === 0);
    expect(unexpected.map(([area, hits]) => `${area}: ${hits.length}: ${hits.join(', ')}`)).toEqual([]);
    expect(clean).toEqual([]);
  });

  it('no comment and no text of src/ has one', () => {
    const sources = sourceWords();
    expect(sources.length).toBeGreaterThan(200);
    expect(sources.flatMap(([file, words]) => found(words).map((hit) => `${file}: ${hit}`))).toEqual([]);
  });
});
