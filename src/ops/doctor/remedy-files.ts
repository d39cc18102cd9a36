import { readFileSync } from 'node:fs';

/** What to do about a finding, by the check's id: `host.node  Install Node …`, a line each. */
const LINES = readFileSync(new URL('../../../views/doctor.en.txt', import.meta.url), 'utf8').trim();

export const REMEDIES: ReadonlyMap<string, string> = new Map(
  LINES.split('\n').map((line) => line.split('  ', 2) as [id: string, remedy: string]),
);
