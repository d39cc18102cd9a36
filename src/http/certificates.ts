import { generateKeyPairSync, randomBytes } from 'node:crypto';
import forge from 'node-forge';
import { DAY } from '../lib/clock.ts';

/** Key pairs and the common fields of the certificates that gpd makes (`gpd tls`). */

const BACKDATE_MS = DAY;

/** OpenSSL generates it: JavaScript would take seconds. */
export function createKeyPair() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 3072 });
  const privatePem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const rsa = forge.pki.privateKeyFromPem(privatePem);
  return { privatePem, privateKey: rsa, publicKey: forge.pki.setRsaPublicKey(rsa.n, rsa.e) };
}

/** Positive, at most 20 bytes (RFC 5280 section 4.1.2.2), and without a leading zero, which DER forbids. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

export function newCertificate(
  publicKey: forge.pki.rsa.PublicKey,
  subject: string,
  now: number,
  days: number,
): forge.pki.Certificate {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = publicKey;
  certificate.serialNumber = serialNumber();
  certificate.validity.notBefore = new Date(now - BACKDATE_MS);
  certificate.validity.notAfter = new Date(now + days * DAY);
  certificate.setSubject([{ name: 'commonName', value: subject }]);
  return certificate;
}
