import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { WriteAction } from '../../consent/plan-write.ts';
import { stateMacs } from '../../consent/state-mac-store.ts';
import { listPolicies, publishPolicy } from '../../consent/terms-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { tryOr } from '../../lib/errors.ts';
import {
  canProcessRequestSchema,
  consentWriteSchema,
  policyRequestSchema,
  principalRequestSchema,
} from '../../schema/consent.ts';
import {
  addCommand,
  type CommandContext,
  checkInteger,
  checkObject,
  checkValue,
  type Flags,
  noSuchTenant,
} from '../command-service.ts';
import { misused, print, printTable } from '../io-service.ts';

/**
 * `gpd consent check|grant|deny|withdraw|history|policies`: choices of people, and the policies that were
 * shown to them.
 */
export function defineDecisions(consent: Command): void {
  addCommand(consent, 'check <kid>', check, {
    about: 'check whether this processing is allowed',
    example: 'gpd consent check shop alice newsletter',
  })
    .argument('<principal>', 'principalId of the person')
    .argument('<purpose>', 'id of the purpose');
  addWrite(consent, 'grant', 'record a grant');
  addWrite(consent, 'deny', 'record a denial');
  addWrite(consent, 'withdraw', 'record a withdrawal');
  addCommand(consent, 'history <kid>', history, {
    about: 'show what a principal chose, newest first',
    example: 'gpd consent history shop alice',
  }).argument('<principal>', 'principalId of the person');
  addCommand(consent, 'policies [kid]', policies, {
    about: 'list the policy versions, or publish one',
    example: 'gpd consent policies shop --publish privacy.txt --material',
  })
    .option('--publish <file>', 'publish the exact text of this file')
    .option('--material', 'ask people again who agreed to an earlier version');
}

function addWrite(consent: Command, action: WriteAction, about: string): void {
  addCommand(consent, `${action} <kid>`, recordChoice(action), {
    about,
    example: `gpd consent ${action} shop alice newsletter`,
  })
    .argument('<principal>', 'principalId of the person')
    .argument('<purposes...>', 'ids of the purposes')
    .option('--policy-version <n>', 'the policy that was shown (default: the latest)')
    .option('--gpc', 'a Global Privacy Control signal was present: opt out of every purpose that honours it')
    .option('--no-gpc', 'no GPC signal was present: a grant ends the opt-out of its purposes');
}

async function check(context: CommandContext, kid: string, principalId: string, purpose: string) {
  const request = checkValue(canProcessRequestSchema, { principalId, purpose }, 'principal or purpose: ');
  const tenant = await context.tenant(kid);
  const { service } = (await context.services()).consent;
  const decision = await service.check(tenant, request);
  print(decision, () => [
    `${decision.allowed ? 'allowed' : 'not allowed'}: ${decision.reason}`,
    `proof: entry ${decision.proof.seq}, ${decision.proof.hash}`,
  ]);
}

/** The column is a 32-bit integer. */
const MAX_VERSION = 2_147_483_647;

const recordChoice =
  (action: WriteAction) =>
  async (
    context: CommandContext,
    kid: string,
    principalId: string,
    purposes: string[],
    flags: Flags<'policyVersion', 'gpc'>,
  ): Promise<void> => {
    const { policyVersion: version } = flags;
    const policyVersion =
      version && checkInteger('--policy-version', version, [0, MAX_VERSION], 'a whole number, 0 or more');
    const gpc = flags.gpc === undefined ? {} : { gpc: flags.gpc };
    const value = { principalId, purposes, policyVersion, ...gpc };
    const body = checkObject(consentWriteSchema, value);
    const tenant = await context.tenant(kid);
    const { service } = (await context.services()).consent;
    const request = { action, body, source: 'cli', caller: 'cli', idempotencyKey: null } as const;
    const answer = await service.write(tenant, request);
    print(answer, () => answer.entries.map((entry) => `${entry.purpose}  entry ${entry.seq}  ${entry.hash}`));
  };

async function history(context: CommandContext, kid: string, principalText: string): Promise<void> {
  const { principalId } = checkValue(principalRequestSchema, { principalId: principalText }, 'principal: ');
  const tenant = await context.tenant(kid);
  const { service } = (await context.services()).consent;
  // The whole history, because the answer to a person who asks must be complete.
  const events = [];
  let cursor: string | undefined;
  do {
    const page = await service.history(tenant, principalId, { limit: 200, cursor });
    events.push(...page.events);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  const columns = { ENTRY: 'seq', TIME: 'time', PURPOSE: 'purpose', EVENT: 'type' } as const;
  printTable(events, 'no events; `gpd consent grant` records a choice', columns, { principalId, events });
}

async function policies(
  { stored, by }: CommandContext,
  kidArgument: string | undefined,
  flags: Flags<'publish', 'material'>,
): Promise<void> {
  if (flags.material === true && flags.publish === undefined)
    throw misused('--material requires --publish FILE');
  const store = await stored(kidArgument);
  const { database, kid } = store;
  if (flags.publish !== undefined) {
    const value = { text: readText(flags.publish), material: flags.material === true };
    const policy = checkValue(policyRequestSchema, value, `${flags.publish}: `);
    const terms = (await stateMacs(store)).get(kid);
    if (!terms || !(await publishPolicy(database, terms, policy, await by(kid)))) throw noSuchTenant(kid);
  }
  const list = (await listPolicies(database, kid)).map(({ version, sha256, material, publishedAt }) => ({
    version,
    sha256,
    material,
    publishedAt: isoTime(publishedAt),
  }));
  printTable(list, 'no policies; `gpd consent policies --publish FILE` publishes one', {
    VERSION: 'version',
    PUBLISHED: 'publishedAt',
    MATERIAL: ({ material }) => (material ? 'yes' : 'no'),
    'SHA-256 OF THE TEXT': 'sha256',
  });
}

/**
 * Refuses a file that is not UTF-8: decoding would replace characters, and the log would sign the
 * replacement.
 */
function readText(file: string): string {
  const bytes = tryOr(() => readFileSync(file), null);
  if (bytes === null) throw misused(`${file} cannot be read`);
  if (!isUtf8(bytes)) throw misused(`${file} is not UTF-8: convert it first (iconv -t UTF-8)`);
  return bytes.toString('utf8');
}
