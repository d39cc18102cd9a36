import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Place, say, sha256 } from './run.ts';

/** Writes what others need to verify the artefacts: their provenance, their hashes, and a signature over the hashes. */

const listArtefacts = (out: string): string[] => readdirSync(out).sort();

/** Writes an in-toto statement with SLSA provenance: the commit, the packages and the Node that the artefacts were made from. */
export function writeProvenance({ out, source, version, commit, epoch }: Place): void {
  const file = join(out, `gpd-${version}-provenance.json`);
  const subject = listArtefacts(out).map((name) => ({ name, digest: { sha256: sha256(join(out, name)) } }));
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

/** Writes SHA256SUMS, which `sha256sum --check` reads. */
export function writeSums(out: string): string {
  const lines = listArtefacts(out).map((name) => `${sha256(join(out, name))}  ${name}\n`);
  const file = join(out, 'SHA256SUMS');
  writeFileSync(file, lines.join(''));
  return file;
}

/**
 * Signs the bytes of the file with Ed25519; `openssl pkeyutl -verify -rawin` verifies that.
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
