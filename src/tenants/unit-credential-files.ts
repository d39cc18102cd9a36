import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { orElse } from '../lib/or-else.ts';

/** Units of the server, and what changes them; a later one wins. /usr/bin/gpd looks in the same places. */
const SHIPPED = '/usr/lib/systemd/system';
const LOCAL = '/etc/systemd/system';
const UNITS = ['gpd.service', 'gpd@.service'];

function unitFiles(): string[] {
  const dropIns = UNITS.flatMap((unit) => {
    const folder = join(LOCAL, `${unit}.d`);
    const names = orElse(() => readdirSync(folder), []).filter((name) => name.endsWith('.conf'));
    return names.sort().map((name) => join(folder, name));
  });
  return [SHIPPED, LOCAL].flatMap((folder) => UNITS.map((unit) => join(folder, unit))).concat(dropIns);
}

const LOADED = /^[ \t]*LoadCredential[ \t]*=[ \t]*master-key:(\/.*\S)[ \t\r]*$/gm;

/** The file that LoadCredential= of an installed unit names for the master key; null: none does. */
export function findUnitCredential(): string | null {
  const found = unitFiles().flatMap((file) => [
    ...orElse(() => readFileSync(file, 'utf8'), '').matchAll(LOADED),
  ]);
  return found.at(-1)?.[1] ?? null;
}
