import { describe, it } from 'vitest';

/**
 * Describes a suite that needs a tool. Without the tool it prints its name
 * and is skipped; with REQUIRE_TOOLS=1 it fails, unless it is optional.
 * @param missing the reason why the tool is missing and the remedy; null if it is installed
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
