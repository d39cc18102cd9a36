import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Place, say, sha256 } from './run.ts';

/** What lets somebody else judge the artefacts: where they come from, their hashes, and a signature over these. */

const artefacts = (out: string): string[] => readdirSync(out).sort();

/** An in-toto statement with SLSA provenance: which commit, which packages and which Node they were made of. */
export function writeProvenance({ out, source, version, commit, epoch }: Place): void {
  const file = join(out, `gpd-${version}-provenance.json`);
  const subject = artefacts(out).map((name) => ({ name, digest: { sha256: sha256(join(out, name)) } }));
  const material = (path: string): object => ({
    uri: `file:${path}`,
    digest: { sha256: sha256(join(source, path)) },
  });
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject,
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://gpd.dev/release/v1',
        externalParameters: { version },
        internalParameters: { SOURCE_DATE_EPOCH: epoch },
        resolvedDependencies: [
          { uri: 'git+https://gpd.dev/gpd.git', digest: { gitCommit: commit } },
          ...[
            'package-lock.json',
            'packaging/node.json',
            'sdk/python/requirements-dev.txt',
            'sdk/java/pom.xml',
          ].map(material),
        ],
      },
      runDetails: { builder: { id: 'https://gpd.dev/release/by-hand' } },
    },
  };
  writeFileSync(file, `${JSON.stringify(statement, null, 2)}\n`);
}

/** For `sha256sum --check`. */
export function writeSums(out: string): string {
  const lines = artefacts(out).map((name) => `${sha256(join(out, name))}  ${name}\n`);
  const file = join(out, 'SHA256SUMS');
  writeFileSync(file, lines.join(''));
  return file;
}

/**
 * Ed25519 over the file as it is: `openssl pkeyutl -verify -rawin` checks it.
 * @param keyFile a private key as PEM (`openssl genpkey -algorithm ed25519`); null leaves the release unsigned
 */
export function signFile(file: string, keyFile: string | null): void {
  if (keyFile === null) {
    say(`UNSIGNED: ${basename(file)} has no signature, because no --key was given`);
    return;
  }
  const key = createPrivateKey(readFileSync(keyFile));
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`${keyFile} is not an Ed25519 key`);
  writeFileSync(`${file}.sig`, sign(null, readFileSync(file), key));
  writeFileSync(`${file}.pub`, createPublicKey(key).export({ type: 'spki', format: 'pem' }));
}
