import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every file that says the version, and how. */
const PLACES: readonly (readonly [string, RegExp])[] = [
  ['package.json', /^ {2}"version": "([^"]+)"/m],
  ['package-lock.json', /^ {2}"version": "([^"]+)"/m],
  ['sdk/node/package.json', /^ {2}"version": "([^"]+)"/m],
  ['sdk/node/src/version.ts', /VERSION = '([^']+)'/],
  ['sdk/python/pyproject.toml', /^version = "([^"]+)"/m],
  ['sdk/python/src/gpd_consent/_version.py', /VERSION = "([^"]+)"/],
  ['sdk/go/doc.go', /Version = "([^"]+)"/],
  ['sdk/java/pom.xml', /<artifactId>consent<\/artifactId>\s*<version>([^<]+)</],
  ['sdk/java/src/main/java/dev/gpd/consent/Transport.java', /VERSION = "([^"]+)"/],
];

/** @returns the files that say another version than this one */
export function otherVersions(root: string, version: string): string[] {
  return PLACES.flatMap(([path, pattern]) => {
    const found = pattern.exec(readFileSync(join(root, path), 'utf8'))?.[1];
    return found === version ? [] : [`${path} says ${found ?? 'none'}`];
  });
}
