import { X509Certificate } from 'node:crypto';
import type { Knex } from 'knex';
import forge from 'node-forge';
import type { Database } from '../../db/engine.ts';
import { writeMeta } from '../../db/meta-store.ts';
import { cellOf } from '../../db/sql.ts';
import { createKeyPair, newCertificate } from '../../http/certificates.ts';
import { archiveSignerContext, type MasterKey } from '../../keys/master-key.ts';
import type { Installation } from '../../tenants/directory.ts';

/** Signs exports, so that recipients can check that an export came from this installation unchanged. */
export type ArchiveSigner = Awaited<ReturnType<typeof openArchiveSigner>>;

interface Parts extends Pick<Installation, 'database' | 'clock'> {
  readonly masterKey: MasterKey;
  /** The name in the certificate, for a person who reads it. */
  readonly host: string;
  /** Called before an identity is created, which takes seconds. */
  readonly onMake?: () => void;
}

const LIFE_DAYS = 3650;

function createIdentity({ host, masterKey, onMake }: Parts, now: number): StoredSigner {
  onMake?.();
  const pair = createKeyPair();
  const certificate = newCertificate(pair.publicKey, `gpd exports, ${host}`.slice(0, 64), now, LIFE_DAYS);
  certificate.setIssuer(certificate.subject.attributes);
  certificate.setExtensions([
    { name: 'basicConstraints', cA: false, critical: true },
    { name: 'keyUsage', digitalSignature: true, nonRepudiation: true, critical: true },
    { name: 'subjectKeyIdentifier' },
  ]);
  certificate.sign(pair.privateKey, forge.md.sha256.create());
  return {
    certificate: forge.pki.certificateToPem(certificate).replaceAll('\r\n', '\n'),
    wrappedKey: masterKey.wrap(Buffer.from(pair.privatePem), archiveSignerContext),
  };
}

const isExpired = (pem: string, now: number): boolean => Date.parse(new X509Certificate(pem).validTo) <= now;

function signDetached(content: Uint8Array, certificate: string, key: string, now: number): Buffer {
  const message = forge.pkcs7.createSignedData();
  message.content = forge.util.createBuffer(Buffer.from(content).toString('binary'));
  message.addCertificate(certificate);
  message.addSigner({
    key,
    certificate,
    digestAlgorithm: forge.pki.oids['sha256'] as string,
    // In the order of DER for a SET OF: forge keeps the one it is given.
    authenticatedAttributes: [
      { type: forge.pki.oids['contentType'] as string, value: forge.pki.oids['data'] as string },
      // forge takes a Date here; its types only know text.
      { type: forge.pki.oids['signingTime'] as string, value: new Date(now) as unknown as string },
      { type: forge.pki.oids['messageDigest'] as string },
    ],
  });
  message.sign({ detached: true });
  return Buffer.from(forge.asn1.toDer(message.toAsn1()).getBytes(), 'binary');
}

/** The identity of this installation, created for the first export and again after it has expired. */
export async function openArchiveSigner(parts: Parts) {
  const { database, masterKey, clock } = parts;
  const storedSigner = await readArchiveSigner(database);
  const isValid = storedSigner !== null && !isExpired(storedSigner.certificate, clock());
  const { certificate, wrappedKey } = isValid
    ? storedSigner
    : await saveArchiveSigner(database, createIdentity(parts, clock()), storedSigner?.certificate ?? null);
  const key = masterKey.unwrap(wrappedKey, archiveSignerContext).toString();
  const { fingerprint256, validTo } = new X509Certificate(certificate);
  return {
    /** PEM, for a recipient to pin. */
    certificate,
    /** SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` prints it. */
    fingerprint: fingerprint256,
    notAfter: new Date(validTo),
    /** Detached CMS SignedData over these bytes, as DER (RFC 5652 section 5). */
    sign: (content: Uint8Array) => signDetached(content, certificate, key, clock()),
  };
}

/** The installation's identity for exports: a certificate and its private key, wrapped by the master key. */
export interface StoredSigner {
  /** PEM. */
  readonly certificate: string;
  readonly wrappedKey: string;
}

const NAME = 'archive-signer';

/** Both are in one row, so that nobody reads the key of one signer and the certificate of another. */
async function readSigner(rows: Knex.QueryBuilder): Promise<StoredSigner | null> {
  const value = await cellOf<string>(rows.where({ name: NAME }), 'value');
  return value === undefined ? null : (JSON.parse(value) as StoredSigner);
}

export const readArchiveSigner = ({ read }: Database) => readSigner(read('meta'));

/**
 * Writes it unless another process was faster.
 * @param replaces the expired certificate, or null
 * @returns the signer that is stored afterwards
 */
function saveArchiveSigner(database: Database, signer: StoredSigner, replaces: string | null) {
  const value = JSON.stringify(signer);
  return database.transaction(async (tx) => {
    await tx('meta').insert({ name: NAME, value }).onConflict('name').ignore();
    const storedSigner = await readSigner(tx('meta').forUpdate());
    if (storedSigner?.certificate !== replaces) return storedSigner ?? signer;
    await writeMeta(tx, NAME, value);
    return signer;
  });
}

/** @returns the number of rewrapped signers, 0 or 1 */
export async function rewrapArchiveSigner(tx: Knex.Transaction, rewrap: (wrapped: string) => string) {
  const storedSigner = await readSigner(tx('meta').forUpdate());
  if (!storedSigner) return 0;
  const { certificate, wrappedKey } = storedSigner;
  await writeMeta(tx, NAME, JSON.stringify({ certificate, wrappedKey: rewrap(wrappedKey) }));
  return 1;
}
