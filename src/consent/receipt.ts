import type { ConsentChoice, ConsentReceiptAnswer } from '../schema/consent.ts';

/** A receipt for the person. */

export interface ReceiptParts {
  readonly origin: string;
  readonly seq: number;
  readonly hash: string;
  readonly choice: ConsentChoice;
  readonly at: string;
  readonly issuedAt: string;
  readonly principalId: string;
  readonly detail: {
    readonly policyVersion: number | null;
    readonly gpc: boolean;
    readonly source: string;
    readonly expiresAt: string | null;
  };
  readonly purpose: {
    readonly id: string;
    readonly title: string;
    readonly description: string;
    readonly lawfulBasis: string;
  };
  readonly policySha256: string | null;
  readonly notice: {
    readonly controller: string;
    readonly contact: string;
    readonly recipients: string;
    readonly transfers: string;
    readonly authority: string;
  };
}

export function consentReceipt(parts: ReceiptParts): ConsentReceiptAnswer {
  const { purpose, detail, notice, seq, hash, origin } = parts;
  return {
    '@context': 'https://w3id.org/dpv',
    schemaVersion: 'ISO/IEC TS 27560:2023',
    receiptId: `${origin}/${seq}`,
    issuedAt: parts.issuedAt,
    piiPrincipalId: parts.principalId,
    piiController: { name: notice.controller, contact: notice.contact },
    recipients: notice.recipients,
    transfers: notice.transfers,
    supervisoryAuthority: notice.authority,
    consent: {
      status: parts.choice,
      time: parts.at,
      expiresAt: detail.expiresAt,
      gpc: detail.gpc,
      source: detail.source,
      policyVersion: detail.policyVersion,
      policySha256: parts.policySha256,
      purpose: {
        id: purpose.id,
        title: purpose.title,
        description: purpose.description,
        lawfulBasis: purpose.lawfulBasis,
      },
    },
    proof: { log: origin, seq, hash },
  };
}
