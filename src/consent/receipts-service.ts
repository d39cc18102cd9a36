import { CompactSign, importJWK } from 'jose';
import type { Database } from '../db/engine.ts';
import { isoTime } from '../lib/clock.ts';
import { readEntries } from '../log/entries-store.ts';
import { parseStored } from '../log/fold.ts';
import type { ConsentReceiptAnswer, IssuedReceipt } from '../schema/consent.ts';
import type { Installation } from '../tenants/directory.ts';
import type { Purpose } from '../tenants/purposes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { readGivers, readStateGiver } from './givers-store.ts';
import { joinedRefs } from './join-store.ts';
import { findOpening, listHistory } from './openings-store.ts';
import { describeReceipt, hasReceipt, type NamedController, type ReceiptFacts } from './receipt-jsonld.ts';

/**
 * Issues a signed copy of one entry for the person it is about. The log's key signs it, so that one trust
 * anchor is enough; a JWS has no line break, so it cannot pass for a checkpoint.
 * @returns null if the entry does not exist, is not about a person or was erased; `not-yours` for another
 * principal
 */
export async function issueReceipt(
  { database, clock }: Pick<Installation, 'database' | 'clock'>,
  tenant: Tenant,
  seq: number,
  reader: { readonly principal: string; readonly principalId: string } | null,
): Promise<IssuedReceipt | 'not-yours' | null> {
  const opening = await findOpening(database, tenant, seq);
  const [entry] = await readEntries(database, tenant.kid, seq, 1);
  if (!opening || opening.choice === 'doubted' || opening.choice === 'linked' || entry?.seq !== seq)
    return null;
  if (reader && !(await joinedRefs(database, tenant, reader.principal)).includes(opening.principal))
    return 'not-yours';
  const settings = (await createTenantStore(database).get(tenant.kid))?.settings;
  const origin = tenant.signer.name;
  const policy = tenant.policies.find(({ version }) => version === opening.detail.policyVersion);
  const { policyVersion, expiresAt, gpc, definition, overGpc, source, recordedAt, evidence } = opening.detail;
  const purpose = await purposeAsShown(database, tenant, opening.purpose, definition);
  // The state has a MAC, which no row of the log's openings has.
  const given =
    (await readStateGiver(database, tenant, opening)) ??
    (await readGivers(database, tenant, [opening])).get(seq) ??
    'unknown';
  const receipt: ConsentReceiptAnswer = {
    '@context': 'https://w3id.org/dpv',
    schemaVersion: 'ISO/IEC TS 27560:2023',
    receiptId: `${origin}/${seq}`,
    issuedAt: isoTime(clock()),
    // A caller with a secret key did not name the principal, so the opening names it.
    piiPrincipalId: reader?.principalId ?? opening.principal,
    piiController: {
      name: settings?.['notice.controller'] ?? '',
      contact: settings?.['notice.contact'] ?? '',
    },
    recipients: settings?.['notice.recipients'] ?? '',
    transfers: settings?.['notice.transfers'] ?? '',
    supervisoryAuthority: settings?.['notice.authority'] ?? '',
    consent: {
      status: opening.choice,
      time: isoTime(opening.at),
      expiresAt,
      gpc,
      ...(definition !== undefined && { definition }),
      ...(overGpc && { overGpc }),
      ...(recordedAt !== undefined && { recordedAt }),
      ...(evidence !== undefined && { evidence }),
      source,
      ...(opening.choice === 'granted' && { given }),
      policyVersion,
      policySha256: policy?.sha256 ?? null,
      purpose,
    },
    proof: { log: origin, seq, hash: entry.hash },
  };
  return { receipt, ...(await signReceipt(tenant, receipt)) };
}

/** The newest choices of a person, with what a page says about them. */
export interface PersonReceipts {
  readonly kid: string;
  readonly controller: NamedController;
  /** Newest first. */
  readonly choices: readonly ReceiptFacts[];
  readonly receipts: readonly ReturnType<typeof describeReceipt>[];
}

const MAX_RECEIPTS = 200;

/** Lists the receipts of a person and of the browsers that are joined with them. */
export async function listReceipts(
  { database }: Pick<Installation, 'database'>,
  tenant: Tenant,
  principalId: string,
): Promise<PersonReceipts> {
  const { kid, settings, policies, refOf, signer } = tenant;
  const principals = await joinedRefs(database, tenant, refOf(principalId));
  const events = await listHistory(database, tenant, principals, { before: null, limit: MAX_RECEIPTS });
  const givers = await readGivers(
    database,
    tenant,
    events.filter(({ choice }) => choice === 'granted'),
  );
  const choices: ReceiptFacts[] = [];
  for (const { choice, seq, at, purpose, detail } of events) {
    const [entry] = hasReceipt(choice) ? await readEntries(database, kid, seq, 1) : [];
    if (!entry || !hasReceipt(choice)) continue;
    choices.push({
      ...{ origin: signer.name, seq, hash: entry.hash, status: choice, at, subject: principalId, detail },
      purpose: await purposeAsShown(database, tenant, purpose, detail.definition),
      policySha256: policies.find(({ version }) => version === detail.policyVersion)?.sha256 ?? null,
      controller: settings,
      given: givers.get(seq) ?? null,
    });
  }
  return { kid, controller: settings, choices, receipts: choices.map(describeReceipt) };
}

/** The purpose in the words under which the person chose, even if they were changed since. */
async function purposeAsShown(
  database: Database,
  { kid, termsOf }: Tenant,
  id: string,
  definition: number | undefined,
): Promise<Pick<Purpose, 'id' | 'title' | 'description' | 'lawfulBasis'>> {
  const [entry] = definition === undefined ? [] : await readEntries(database, kid, definition, 1);
  const shown = entry ? (parseStored(entry.entry).body as Purpose) : termsOf(id);
  const { title, description, lawfulBasis } = shown ?? { title: id, description: '', lawfulBasis: 'consent' };
  return { id, title, description, lawfulBasis };
}

async function signReceipt({ receiptKey, signer }: Tenant, receipt: ConsentReceiptAnswer) {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: receiptKey.publicX } as const;
  const key = await importJWK({ ...jwk, d: receiptKey.seed }, 'EdDSA');
  const header = { alg: 'EdDSA', typ: 'consent-receipt+jws', kid: signer.name };
  const jws = await new CompactSign(Buffer.from(JSON.stringify(receipt)))
    .setProtectedHeader(header)
    .sign(key);
  return { jws, jwk };
}
