import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Units of the server, and what changes them; a later one wins. /usr/bin/gpd looks in the same places. */
const SHIPPED = '/usr/lib/systemd/system';
const LOCAL = '/etc/systemd/system';
const UNITS = ['gpd.service', 'gpd@.service'];

function orNothing<T>(read: () => T[]): T[] {
  try {
    return read();
  } catch {
    return [];
  }
}

function unitFiles(): string[] {
  const dropIns = UNITS.flatMap((unit) => {
    const folder = join(LOCAL, `${unit}.d`);
    const names = orNothing(() => readdirSync(folder)).filter((name) => name.endsWith('.conf'));
    return names.sort().map((name) => join(folder, name));
  });
  return [SHIPPED, LOCAL].flatMap((folder) => UNITS.map((unit) => join(folder, unit))).concat(dropIns);
}

/** The file that LoadCredential= of an installed unit names for the master key; null: none does. */
export function findUnitCredential(): string | null {
  const found = unitFiles().flatMap((file) =>
    orNothing(() => [
      ...readFileSync(file, 'utf8').matchAll(
        /^[ \t]*LoadCredential[ \t]*=[ \t]*master-key:(\/.*\S)[ \t\r]*$/gm,
      ),
    ]),
  );
  return found.at(-1)?.[1] ?? null;
}
