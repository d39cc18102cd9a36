import type { Policy } from '../../ingest/classify/policy.ts';
import type { DsarHead } from './service.ts';

/** `manifest.json`: what is in the archive and the hash of each file, so that one signature covers all of them. */

export interface Digest {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

export interface ManifestFacts {
  readonly version: string;
  readonly policy: Policy;
  readonly decisions: number;
  readonly files: readonly Digest[];
}

export function makeManifest(head: DsarHead, facts: ManifestFacts): Buffer {
  const { version, policy, decisions, files } = facts;
  const manifest = {
    format: 'gpd-dsar-archive/1',
    tenant: head.subject.tenant,
    subject: head.subject.reference,
    generatedAt: head.generatedAt,
    gpdVersion: version,
    policyVersion: policy.version,
    decisions,
    files,
  };
  // CR LF, to which openssl converts a text without `-binary`: so the signature is valid either way.
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`.replaceAll('\n', '\r\n'));
}
