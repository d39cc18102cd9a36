import { isIP } from 'node:net';
import forge from 'node-forge';
import { createKeyPair, newCertificate } from '../http/certificates.ts';

/** `gpd tls`: creates a private CA with one certificate, or a signing request for a real CA. */

const CA_DAYS = 3650;
/** Browsers accept certificates of up to 398 days (CA/Browser Forum, ballot SC31). */
const LEAF_DAYS = 397;
const DNS_NAME = 2;
const IP_ADDRESS = 7;

function altNames(hosts: readonly string[]): Record<string, unknown>[] {
  return hosts.map((host) =>
    isIP(host) === 0 ? { type: DNS_NAME, value: host } : { type: IP_ADDRESS, ip: host },
  );
}

/** File name → PEM. */
type TlsFiles = Readonly<Record<string, string>>;

/** Creates a private CA, and a certificate for these hosts that it signs. */
export function createSelfSigned(hosts: readonly string[], now: number): TlsFiles {
  const authority = createKeyPair();
  const ca = newCertificate(authority.publicKey, 'gpd private CA', now, CA_DAYS);
  ca.setIssuer(ca.subject.attributes);
  ca.setExtensions([
    { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
    { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    { name: 'subjectKeyIdentifier' },
  ]);
  ca.sign(authority.privateKey, forge.md.sha256.create());

  const server = createKeyPair();
  const leaf = newCertificate(server.publicKey, hosts[0] ?? 'gpd', now, LEAF_DAYS);
  leaf.setIssuer(ca.subject.attributes);
  leaf.setExtensions([
    { name: 'basicConstraints', cA: false, critical: true },
    { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
    { name: 'extKeyUsage', serverAuth: true },
    { name: 'subjectAltName', altNames: altNames(hosts) },
    { name: 'subjectKeyIdentifier' },
  ]);
  leaf.sign(authority.privateKey, forge.md.sha256.create());
  return {
    'ca.crt': forge.pki.certificateToPem(ca),
    'ca.key': authority.privatePem,
    'server.crt': forge.pki.certificateToPem(leaf),
    'server.key': server.privatePem,
  };
}

/** Creates a key and a PKCS #10 request for these hosts, for a CA of the operator's choice. */
export function createSigningRequest(hosts: readonly string[]): TlsFiles {
  const pair = createKeyPair();
  const request = forge.pki.createCertificationRequest();
  request.publicKey = pair.publicKey;
  request.setSubject([{ name: 'commonName', value: hosts[0] ?? 'gpd' }]);
  request.setAttributes([
    { name: 'extensionRequest', extensions: [{ name: 'subjectAltName', altNames: altNames(hosts) }] },
  ]);
  request.sign(pair.privateKey, forge.md.sha256.create());
  return { 'server.csr': forge.pki.certificationRequestToPem(request), 'server.key': pair.privatePem };
}
