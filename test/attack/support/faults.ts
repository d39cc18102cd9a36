import { afterEach, expect } from 'vitest';

/** After each case: what the server logged during it holds none of these, so that a fault names its case. */
export function expectNoneLogged(words: RegExp, logs: () => string): void {
  let readUntil = 0;
  afterEach(() => {
    const all = logs();
    const added = all.slice(readUntil);
    readUntil = all.length;
    expect(added).not.toMatch(words);
  });
}
