import { runCase } from '../../../sdk/node/test/conformance/run-case.ts';
import type { Servers } from '../../../sdk/node/test/conformance/servers.ts';

/**
 * Runs shared cases without vitest, for runtimes that have none. One after the other, because all share the connections of the runtime.
 * @returns a line for each case that failed
 */
export async function failuresOf(
  cases: readonly { readonly name: string }[],
  servers: Servers,
): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const one of cases) {
    await runCase(one.name, servers).catch((error: unknown) =>
      failures.push(`${one.name}: ${String(error)}`),
    );
  }
  return failures;
}
