import { describe, it } from 'vitest';

/**
 * A suite that needs more than a tool: leave to trace processes or to mount, which a container seldom gives. Without it the
 * suite says so by name and is passed over, where the tools are required too: nothing that could be installed would help.
 */
export function describeWhereAllowed(name: string, refused: string | null, suite: () => void): void {
  if (refused === null) {
    describe(name, suite);
    return;
  }
  const line = `NOT RUN: ${name}: ${refused}`;
  process.stderr.write(`${line}\n`);
  describe(name, () => it.skip(line, () => {}));
}
