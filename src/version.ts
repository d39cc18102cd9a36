import { readFileSync } from 'node:fs';

/** The version of the package, read once from package.json. */

const file = new URL('../package.json', import.meta.url);

/** The version of package.json, the only place it is written. */
export const VERSION: string = (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
