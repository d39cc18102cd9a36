import { constants, createCipheriv, type KeyObject, publicEncrypt, X509Certificate } from 'node:crypto';
import { Transform } from 'node:stream';
import forge from 'node-forge';
import type { Random } from '../../lib/crypto.ts';

/**
 * CMS EnvelopedData (RFC 5652 section 6) around a stream: AES-256-CBC under a fresh key, which is wrapped for
 * one recipient by RSAES-OAEP with SHA-256 (RFC 3560). forge's own would hold the whole content in memory and
 * wrap the key by PKCS #1 v1.5, so that only its ASN.1 is used. The length is not known before the end: the
 * outer layers are BER with indefinite lengths, as `openssl cms -stream` writes them.
 */

const { asn1 } = forge;
const { Class, Type } = asn1;

const OID = {
  data: '1.2.840.113549.1.7.1',
  envelopedData: '1.2.840.113549.1.7.3',
  aes256Cbc: '2.16.840.1.101.3.4.1.42',
  oaep: '1.2.840.113549.1.1.7',
  mgf1: '1.2.840.113549.1.1.8',
  sha256: '2.16.840.1.101.3.4.2.1',
} as const;

const MIN_RSA_BITS = 2048;
const CHUNK = 64 * 1024;
const END = Buffer.from([0, 0]);

/** The recipient to whom an export is encrypted. */
export interface ExportRecipient {
  readonly key: KeyObject;
  /** The bytes of the certificate, by which openssl finds the recipient. */
  readonly issuer: forge.asn1.Asn1;
  readonly serial: forge.asn1.Asn1;
  readonly fingerprint: string;
}

/** The certificate cannot be encrypted to; the message says why. */
export class BadRecipient extends Error {}

const binary = (bytes: Uint8Array): string => Buffer.from(bytes).toString('binary');
const sequence = (...parts: forge.asn1.Asn1[]) => asn1.create(Class.UNIVERSAL, Type.SEQUENCE, true, parts);
const explicit = (tag: number, part: forge.asn1.Asn1) =>
  asn1.create(Class.CONTEXT_SPECIFIC, tag as forge.asn1.Type, true, [part]);
const octets = (bytes: Uint8Array) => asn1.create(Class.UNIVERSAL, Type.OCTETSTRING, false, binary(bytes));
const oid = (id: string) => asn1.create(Class.UNIVERSAL, Type.OID, false, asn1.oidToDer(id).getBytes());
const nothing = () => asn1.create(Class.UNIVERSAL, Type.NULL, false, '');
const der = (part: forge.asn1.Asn1): Buffer => Buffer.from(asn1.toDer(part).getBytes(), 'binary');
const version = () => asn1.create(Class.UNIVERSAL, Type.INTEGER, false, '\0');

function namesOf(certificate: X509Certificate): Pick<ExportRecipient, 'issuer' | 'serial'> {
  const whole = asn1.fromDer(binary(certificate.raw));
  const fields = ((whole.value as forge.asn1.Asn1[])[0]?.value ?? []) as forge.asn1.Asn1[];
  // Certificates of version 1 omit the field [0] version (RFC 5280 section 4.1).
  const at = fields[0]?.tagClass === Class.CONTEXT_SPECIFIC ? 1 : 0;
  const [serial, issuer] = [fields[at], fields[at + 2]];
  if (!serial || !issuer) throw new BadRecipient('it cannot be read as a certificate');
  return { serial, issuer };
}

function mayEncipher(pem: string): boolean {
  const usage = forge.pki.certificateFromPem(pem).getExtension('keyUsage') as
    | { readonly keyEncipherment?: boolean }
    | null
    | undefined;
  return !usage || usage.keyEncipherment === true;
}

/** @throws {BadRecipient} */
export function readRecipient(file: Uint8Array, now: number): ExportRecipient {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(file);
  } catch {
    throw new BadRecipient('it holds no certificate (PEM or DER)');
  }
  const key = certificate.publicKey;
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key.asymmetricKeyType !== 'rsa' || bits < MIN_RSA_BITS) {
    throw new BadRecipient(`the certificate needs an RSA key of at least ${MIN_RSA_BITS} bits`);
  }
  if (Date.parse(certificate.validTo) <= now) throw new BadRecipient('the certificate has expired');
  if (Date.parse(certificate.validFrom) > now) throw new BadRecipient('the certificate is not valid yet');
  if (!mayEncipher(certificate.toString())) {
    throw new BadRecipient('the certificate does not allow key encipherment (its keyUsage)');
  }
  return { key, ...namesOf(certificate), fingerprint: certificate.fingerprint256 };
}

function wrapKey(recipient: ExportRecipient, key: Uint8Array): forge.asn1.Asn1 {
  const sha256 = (): forge.asn1.Asn1 => sequence(oid(OID.sha256), nothing());
  const oaep = sequence(explicit(0, sha256()), explicit(1, sequence(oid(OID.mgf1), sha256())));
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  const wrapped = publicEncrypt({ key: recipient.key, padding, oaepHash: 'sha256' }, key);
  return sequence(
    version(),
    sequence(recipient.issuer, recipient.serial),
    sequence(oid(OID.oaep), oaep),
    octets(wrapped),
  );
}

/** The bytes before the ciphertext. The five layers that they open are closed by five end-of-contents. */
function envelopeHead(recipient: ExportRecipient, key: Uint8Array, iv: Uint8Array): Buffer {
  const openLayer = (tag: number): Buffer => Buffer.from([tag, 0x80]);
  const recipients = asn1.create(Class.UNIVERSAL, Type.SET, true, [wrapKey(recipient, key)]);
  return Buffer.concat([
    openLayer(0x30),
    der(oid(OID.envelopedData)),
    openLayer(0xa0),
    openLayer(0x30),
    der(version()),
    der(recipients),
    openLayer(0x30),
    der(oid(OID.data)),
    der(sequence(oid(OID.aes256Cbc), octets(iv))),
    openLayer(0xa0),
  ]);
}
const CLOSING = Buffer.concat([END, END, END, END, END]);

export function createEnveloper(recipient: ExportRecipient, random: Random): Transform {
  const [key, iv] = [random(32), random(16)];
  const cipher = createCipheriv('aes-256-cbc', key, iv);
  let pending = Buffer.alloc(0);
  let hasHead = false;
  /** Emits whole chunks, and the rest at the end. */
  const emit = (to: Transform, bytes: Uint8Array, isLast: boolean): void => {
    if (!hasHead) to.push(envelopeHead(recipient, key, iv));
    hasHead = true;
    pending = Buffer.concat([pending, bytes]);
    while (pending.length >= CHUNK || (isLast && pending.length > 0)) {
      to.push(der(octets(pending.subarray(0, CHUNK))));
      pending = pending.subarray(CHUNK);
    }
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, onDone) {
      emit(this, cipher.update(chunk), false);
      onDone();
    },
    flush(onDone) {
      emit(this, cipher.final(), true);
      this.push(CLOSING);
      onDone();
    },
  });
}
