import { entryTime } from '../ledger/entries.ts';
import type { Json } from '../lib/json.ts';
import type { Given } from '../schema/consent.ts';
import type { Purpose } from '../tenants/purposes.ts';

/**
 * Consent receipts as JSON-LD: the fields of ISO/IEC TS 27560, which the context maps to the Data Privacy
 * Vocabulary 2.3 after its guide consent-27560. The context is inside, so that a reader needs no network.
 * Terms that the vocabulary lacks, and texts where it wants an IRI, are gpd's.
 */

type Status = 'granted' | 'denied' | 'withdrawn' | 'gpc-opt-out';

/** The classes of DPV for what the person chose; an opt-out by GPC is a refusal by signal. */
const STATES: Readonly<Record<Status, string>> = {
  granted: 'dpv:ConsentGiven',
  denied: 'dpv:ConsentRefused',
  withdrawn: 'dpv:ConsentWithdrawn',
  'gpc-opt-out': 'dpv:ConsentRefused',
};

const dateTime = (id: string) => ({ '@id': id, '@type': 'xsd:dateTime' });

export const RECEIPT_CONTEXT: Json = {
  dpv: 'https://w3id.org/dpv#',
  dct: 'http://purl.org/dc/terms/',
  xsd: 'http://www.w3.org/2001/XMLSchema#',
  gpd: 'urn:gpd:',
  schema_version: 'gpd:schema_version',
  profile: { '@id': 'dct:conformsTo', '@type': '@id' },
  record_id: 'dpv:hasIdentifier',
  pii_principal: 'dpv:hasDataSubject',
  pii_principal_id: 'dpv:hasIdentifier',
  pii_controllers: 'dpv:hasDataController',
  party_name: 'dpv:hasName',
  party_contact: 'dpv:hasContact',
  purposes: 'dpv:hasPurpose',
  purpose: 'dct:title',
  purpose_description: 'dct:description',
  lawful_basis: 'gpd:lawful_basis',
  legal_basis: { '@id': 'dpv:hasLegalBasis', '@type': '@id' },
  recipients: 'gpd:recipients',
  jurisdiction_transfers: 'gpd:jurisdiction_transfers',
  supervisory_authority: 'gpd:supervisory_authority',
  privacy_notice: 'dpv:hasNotice',
  event_time: dateTime('dpv:isIndicatedAtTime'),
  event_type: 'gpd:event_type',
  event_state: { '@id': 'dpv:hasConsentStatus', '@type': '@id' },
  valid_until: dateTime('gpd:valid_until'),
  version: 'dct:hasVersion',
  sha256: 'gpd:sha256',
  gpc: 'gpd:gpc',
  over_gpc: 'gpd:over_gpc',
  // `dpv:isIndicatedBy` wants an entity, and a program that nobody identified cannot be one.
  given: 'gpd:given',
  definition: 'gpd:definition',
  proof: 'gpd:proof',
  log: 'gpd:log',
  seq: 'gpd:seq',
  hash: 'gpd:hash',
};

/** The parts of a tenant's settings that say who is responsible. */
export interface NamedController {
  readonly 'notice.controller': string;
  readonly 'notice.contact': string;
  readonly 'notice.recipients': string;
  readonly 'notice.transfers': string;
  readonly 'notice.authority': string;
}

export interface ReceiptFacts {
  /** The name of the log. */
  readonly origin: string;
  readonly seq: number;
  /** The leaf hash of the entry. */
  readonly hash: string;
  readonly status: Status;
  readonly at: number;
  /** The id of the person where it is known, otherwise a keyed reference. */
  readonly subject: string;
  readonly purpose: Pick<Purpose, 'id' | 'title' | 'description' | 'lawfulBasis'>;
  readonly detail: {
    readonly gpc: boolean;
    readonly overGpc?: boolean | undefined;
    readonly source: string;
    readonly expiresAt: string | null;
    readonly policyVersion: number | null;
    readonly definition?: number | undefined;
  };
  readonly policySha256: string | null;
  readonly controller: NamedController;
  /** The giver of a grant that the log names; null: it names none. */
  readonly given: Given | null;
}

/** Is the event of this entry a choice of a person, of which there is a receipt? */
export const hasReceipt = (choice: string): choice is Status => Object.hasOwn(STATES, choice);

/** One receipt without its context. The same entry has the same receipt until the log names another giver. */
export function describeReceipt(facts: ReceiptFacts): { readonly [name: string]: Json } {
  const { origin, seq, hash, status, at, subject, purpose, detail, policySha256, controller, given } = facts;
  return {
    '@id': `https://${origin}/${seq}`,
    '@type': 'dpv:ConsentReceipt',
    schema_version: 'ISO/IEC TS 27560:2023',
    profile: 'https://w3id.org/dpv/schema/dpv-27560#receipt',
    record_id: `${origin}/${seq}`,
    pii_principal: { '@type': 'dpv:DataSubject', pii_principal_id: subject },
    pii_controllers: [
      {
        '@type': 'dpv:DataController',
        party_name: controller['notice.controller'],
        party_contact: controller['notice.contact'],
      },
    ],
    recipients: controller['notice.recipients'],
    jurisdiction_transfers: controller['notice.transfers'],
    supervisory_authority: controller['notice.authority'],
    purposes: [
      {
        '@id': `urn:gpd:purpose:${encodeURIComponent(purpose.id)}`,
        '@type': 'dpv:Purpose',
        purpose: purpose.title,
        purpose_description: purpose.description,
        lawful_basis: purpose.lawfulBasis,
        ...(detail.definition !== undefined && { definition: detail.definition }),
      },
    ],
    ...(purpose.lawfulBasis === 'consent' && { legal_basis: 'dpv:Consent' }),
    privacy_notice: { '@type': 'dpv:ConsentNotice', version: detail.policyVersion, sha256: policySha256 },
    event_time: entryTime(at),
    event_type: detail.source,
    event_state: STATES[status],
    ...(detail.expiresAt !== null && { valid_until: detail.expiresAt }),
    gpc: detail.gpc,
    ...(detail.overGpc === true && { over_gpc: true }),
    ...(given !== null && { given }),
    proof: { log: origin, seq, hash },
  };
}
