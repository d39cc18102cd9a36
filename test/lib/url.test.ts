import { describe, expect, it } from 'vitest';
import { parseUrl } from '../../src/lib/text.ts';

describe('parseUrl', () => {
  it('reads a name beyond ASCII however often it was asked before', () => {
    // Node 20's own URL.canParse refuses it from the moment that its caller is compiled.
    for (let i = 0; i < 100_000; i += 1) parseUrl(`https://agent.example/${i % 7}`);
    expect(parseUrl('https://b\u00fccher.example')?.host).toBe('xn--bcher-kva.example');
    expect(parseUrl('https://')).toBeNull();
  });
});
