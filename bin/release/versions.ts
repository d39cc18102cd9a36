import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Compares the version in all files that contain it, before a release. */

/** Each file with the version, and the pattern that finds it. */
const PLACES: readonly (readonly [string, RegExp])[] = [
  ['package.json', /^ {2}"version": "([^"]+)"/m],
  ['package-lock.json', /^ {2}"version": "([^"]+)"/m],
  ['sdk/node/package.json', /^ {2}"version": "([^"]+)"/m],
  ['sdk/browser/package.json', /^ {2}"version": "([^"]+)"/m],
  ['sdk/react/package.json', /^ {2}"version": "([^"]+)"/m],
  ['sdk/react/package.json', /^ {4}"@gpd\/browser": "\^([^"]+)"/m],
  ['sdk/node/src/version.ts', /VERSION = '([^']+)'/],
  ['sdk/python/pyproject.toml', /^version = "([^"]+)"/m],
  ['sdk/python/src/gpd_consent/_version.py', /VERSION = "([^"]+)"/],
  ['sdk/go/doc.go', /Version = "([^"]+)"/],
  ['sdk/java/pom.xml', /<artifactId>consent<\/artifactId>\s*<version>([^<]+)</],
  ['sdk/java/src/main/java/dev/gpd/consent/Transport.java', /VERSION = "([^"]+)"/],
];

/** @returns a sentence for each file with another version */
export function otherVersions(root: string, version: string): string[] {
  return PLACES.flatMap(([path, pattern]) => {
    const found = pattern.exec(readFileSync(join(root, path), 'utf8'))?.[1];
    return found === version ? [] : [`${path} says ${found ?? 'none'}`];
  });
}
