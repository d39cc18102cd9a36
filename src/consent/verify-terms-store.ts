import type { Database } from '../db/engine.ts';
import { isTrue } from '../db/sql.ts';
import { entryTime } from '../ledger/entries.ts';
import { sha256 } from '../lib/crypto.ts';
import type { Fold } from '../log/fold.ts';
import type { Problems } from '../log/problems.ts';
import type { DefinedPurpose } from '../tenants/purposes.ts';
import { type ConsentPolicyRow, type PurposeRow, rowToPurpose } from '../tenants/tenant-store.ts';

/** Compares the rows of policies and purposes with the last entries about them. */

interface TermsCheck {
  readonly database: Database;
  readonly kid: string;
  readonly problems: Problems;
}

async function policyProblem({ database, kid }: TermsCheck, version: number, fold: Fold) {
  const entry = fold.policies.get(version);
  const row = await database
    .read<ConsentPolicyRow & { text: string }>('consent_policies')
    .where({ kid, version })
    .first();
  if (!entry) return `policy ${version} was never published`;
  if (!row) return `policy ${version} is missing`;
  if (sha256(row.text).toString('hex') !== entry.sha256 || row.sha256 !== entry.sha256)
    return `the text of policy ${version} was changed`;
  const isSameTerms =
    isTrue(row.material) === entry.material && entryTime(Number(row.published_at)) === entry.time;
  return isSameTerms ? null : `policy ${version} was changed`;
}

/** A text may be long, so one is read at a time. */
export async function checkPolicies(check: TermsCheck, fold: Fold): Promise<void> {
  const { database, kid, problems } = check;
  const rows = (await database.read('consent_policies').where({ kid }).pluck('version')) as unknown[];
  const versions = new Set([...fold.policies.keys(), ...rows.map(Number)]);
  for (const version of [...versions].sort((a, b) => a - b)) {
    const problem = await policyProblem(check, version, fold);
    if (problem !== null) problems.add('policy-changed', problem, fold.policies.get(version)?.seq);
  }
}

const isSamePurpose = (row: DefinedPurpose, logged: DefinedPurpose): boolean =>
  Object.entries(row).every(([name, value]) => logged[name as keyof DefinedPurpose] === value);

export async function checkPurposes({ database, kid, problems }: TermsCheck, fold: Fold): Promise<void> {
  const found = (await database.read<PurposeRow>('purposes').where({ kid })) as readonly PurposeRow[];
  const rows = new Map(found.map((row) => [row.id, rowToPurpose(row)]));
  for (const id of new Set([...fold.purposes.keys(), ...rows.keys()])) {
    const [entry, row] = [fold.purposes.get(id), rows.get(id)];
    if (!entry) problems.add('purpose-changed', `purpose ${id} was never defined`);
    else if (!row) problems.add('purpose-changed', `purpose ${id} is missing`, entry.seq);
    else if (!isSamePurpose(row, entry.purpose))
      problems.add('purpose-changed', `purpose ${id} was changed`, entry.seq);
  }
}
