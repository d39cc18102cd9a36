import { makeDirectory } from '../app/directory.ts';
import { readSnapshot } from '../app/snapshot-store.ts';
import type { Store } from '../tenants/installation-files.ts';

/** All tenants as they are now, for one command. */
export async function readDirectory({ database, masterKey }: Store) {
  const directory = makeDirectory(Date.now);
  directory.apply(await readSnapshot(database, -1), masterKey, true);
  return directory;
}
