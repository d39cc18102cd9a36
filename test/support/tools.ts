import { describe, it } from 'vitest';

/** A browser beside other work may be late once on a loaded CI; no other kind of suite is run a second time. */
const BROWSER = { retry: process.env['CI'] ? 1 : 0 };

/** A suite in a real browser. */
export function describeInBrowser(name: string, missing: string | null, suite: () => void): void {
  if (missing === null) describe(name, BROWSER, suite);
  else describeWithTool(name, missing, suite);
}

/**
 * A suite that needs a tool. Without it the suite says so by name, and fails where the tools are required.
 * @param missing why the tool is not there and what to do about it; null when it is
 */
export function describeWithTool(name: string, missing: string | null, suite: () => void): void {
  if (missing === null) {
    describe(name, suite);
    return;
  }
  const line = `NOT RUN: ${name}: ${missing}`;
  process.stderr.write(`${line}\n`);
  describe(name, () => {
    if (process.env['REQUIRE_TOOLS'] === '1') {
      it('has its tool', () => {
        throw new Error(line);
      });
    } else {
      it.skip(line, () => {});
    }
  });
}
