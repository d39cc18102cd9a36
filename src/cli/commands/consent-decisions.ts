import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import type { WriteAction } from '../../consent/plan-write.ts';
import { stateMacs } from '../../consent/state-mac-service.ts';
import { listPolicies, publishPolicy } from '../../consent/terms-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { tryOr } from '../../lib/functions.ts';
import {
  canProcessRequestSchema,
  consentWriteSchema,
  policyRequestSchema,
  principalRequestSchema,
} from '../../schema/consent.ts';
import { withContext } from '../command.ts';
import type { Actions } from '../define.ts';
import { misused, print, printTable } from '../output.ts';
import { checked, checkWhole, type Flags, noSuchTenant, requireTenant } from '../run.ts';

async function check(kid: string, principalId: string, purpose: string): Promise<void> {
  const asked = checked(canProcessRequestSchema, { principalId, purpose }, 'principal or purpose: ');
  await withContext(async (context) => {
    const tenant = await context.tenant(kid);
    const { service } = (await context.services()).consent;
    const decision = await service.check(tenant, asked);
    print(decision, () => [
      `${decision.allowed ? 'allowed' : 'not allowed'}: ${decision.reason}`,
      `proof: entry ${decision.proof.seq}, ${decision.proof.hash}`,
    ]);
  });
}

/** The column is a 32-bit integer. */
const MAX_VERSION = 2_147_483_647;

function write(action: WriteAction) {
  return async (
    kid: string,
    principalId: string,
    purposes: string[],
    flags: Flags<'policyVersion', 'gpc'>,
  ): Promise<void> => {
    const policyVersion =
      flags.policyVersion === undefined
        ? undefined
        : checkWhole(flags.policyVersion, [0, MAX_VERSION], '--policy-version: a whole number, 0 or more');
    const gpc = flags.gpc === undefined ? {} : { gpc: flags.gpc };
    const value = { principalId, purposes, policyVersion, ...gpc };
    const body = checked(consentWriteSchema, value, 'principal or purposes: ');
    await withContext(async (context) => {
      const tenant = await context.tenant(kid);
      const { service } = (await context.services()).consent;
      const request = { action, body, source: 'cli', caller: 'cli', idempotencyKey: null } as const;
      const answer = await service.write(tenant, request);
      print(answer, () =>
        answer.entries.map((entry) => `${entry.purpose}  entry ${entry.seq}  ${entry.hash}`),
      );
    });
  };
}

async function history(kid: string, principalText: string): Promise<void> {
  const { principalId } = checked(principalRequestSchema, { principalId: principalText }, 'principal: ');
  await withContext(async (context) => {
    const tenant = await context.tenant(kid);
    const { service } = (await context.services()).consent;
    // All of it: a person who asks has no use for a page.
    const events = [];
    let cursor: string | undefined;
    do {
      const page = await service.history(tenant, principalId, { limit: 200, cursor });
      events.push(...page.events);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    const columns = { ENTRY: 'seq', TIME: 'time', PURPOSE: 'purpose', EVENT: 'type' } as const;
    printTable({ principalId, events }, events, columns);
  });
}

async function policies(kid: string, flags: Flags<'publish', 'material'>): Promise<void> {
  if (flags.material === true && flags.publish === undefined)
    throw misused('--material requires --publish FILE');
  await withContext(async ({ store, by }) => {
    const { database } = store;
    await requireTenant(database, kid);
    if (flags.publish !== undefined) {
      const value = { text: readText(flags.publish), material: flags.material === true };
      const policy = checked(policyRequestSchema, value, `${flags.publish}: `);
      const terms = (await stateMacs(store)).get(kid);
      if (!terms || !(await publishPolicy(database, terms, policy, await by(kid)))) throw noSuchTenant(kid);
    }
    const list = (await listPolicies(database, kid)).map(({ version, sha256, material, publishedAt }) => ({
      version,
      sha256,
      material,
      publishedAt: isoTime(publishedAt),
    }));
    printTable(list, list, {
      VERSION: 'version',
      PUBLISHED: 'publishedAt',
      MATERIAL: ({ material }) => (material ? 'yes' : 'no'),
      'SHA-256 OF THE TEXT': 'sha256',
    });
  });
}

/** The exact text: what was replaced in it would be signed in its place. */
function readText(file: string): string {
  const bytes = tryOr(() => readFileSync(file), null);
  if (bytes === null) throw misused(`${file} cannot be read`);
  if (!isUtf8(bytes)) throw misused(`${file} is not UTF-8: convert it first (iconv -t UTF-8)`);
  return bytes.toString('utf8');
}

export const DECISIONS: Actions = {
  check,
  grant: write('grant'),
  deny: write('deny'),
  withdraw: write('withdraw'),
  history,
  policies,
};
