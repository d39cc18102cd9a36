import { describe, it } from 'vitest';

/**
 * A suite that needs a tool. Without it the suite says so by name, and fails where the tools are required (REQUIRE_TOOLS=1), unless
 * this one is optional.
 * @param missing why the tool is not there and what to do about it; null when it is
 */
export function describeWithTool(
  name: string,
  missing: string | null,
  suite: () => void,
  { optional = false }: { readonly optional?: boolean } = {},
): void {
  if (missing === null) {
    describe(name, suite);
    return;
  }
  const line = `NOT RUN: ${name}: ${missing}`;
  process.stderr.write(`${line}\n`);
  describe(name, () => {
    if (process.env['REQUIRE_TOOLS'] === '1' && !optional) {
      it('has its tool', () => {
        throw new Error(line);
      });
    } else {
      it.skip(line, () => {});
    }
  });
}
