import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { NEEDS_NAME } from '../../attest/ceremony.ts';
import { STAFF_ROLES } from '../../auth/credentials.ts';
import { baseUrl, ConfigError } from '../../config.ts';
import { canJoinAt, invite, isStaffName, NAME_RULE } from '../../console/invite-service.ts';
import { staffRef } from '../../console/passkey-service.ts';
import { findByName, listStaff, removeStaff, type StaffMember } from '../../console/staff-store.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import { addCommand, type CommandContext, checkKid, checkOneOf, YES } from '../command-service.ts';
import {
  confirmOnTerminal,
  conflict,
  type DestructiveFlags,
  misused,
  notFound,
  print,
  printTable,
  say,
} from '../io-service.ts';

/** `gpd staff`: people who sign in to the console with a passkey, where no identity provider is set. */

const ROLES = STAFF_ROLES.join(', ');

export function define(staff: Command): void {
  addCommand(staff, 'invite', inviteByName, {
    about: 'invite somebody; print a link that works once, for 24 hours',
    example: "gpd staff invite 'Rosa M.' --role reviewer --tenant shop",
  })
    .argument('<name>', 'as colleagues see it; no e-mail address')
    .requiredOption('--role <role>', ROLES)
    .option('--tenant <kid>', 'the tenant that they act for, if there are several', checkKid);
  addCommand(staff, 'list', list, {
    about: 'list the staff, and who has not joined yet',
    example: 'gpd staff list',
  });
  addCommand(staff, 'remove', remove, {
    about: 'remove somebody; their passkey and sessions end',
    example: "gpd staff remove 'Rosa M.'",
  })
    .argument('<name>', 'the name that they were invited by')
    .option(...YES)
    .option('--dry-run', 'show who it is; change nothing');
}

/** A link to an address of digits leads to a page that can make no passkey. @throws {ConfigError} */
function requireName(origin: string): void {
  if (!canJoinAt(origin)) throw new ConfigError(`GPD_BASE_URL is ${origin}: ${NEEDS_NAME}`);
}

async function inviteByName(
  { stored, config, by }: CommandContext,
  name: string,
  { role: roleText, tenant }: { readonly role: string; readonly tenant?: string },
): Promise<void> {
  if (!isStaffName(name)) throw misused(`a name is ${NAME_RULE}`);
  if (config.base_url !== null) requireName(config.base_url);
  const role = checkOneOf('--role', roleText, STAFF_ROLES);
  const { database, kid } = await stored(tenant, 'option --tenant');
  const act = await by(kid);
  const origin = baseUrl(config);
  const invited = await invite(database, { kid, name, role }, { origin, act, random: randomBytes });
  if (!invited) throw conflict(`${name} is already staff; \`gpd staff list\` shows who is`);
  if (config.oidc_issuer !== null)
    say('gpd: warning: GPD_OIDC_ISSUER is set, so nobody signs in with a passkey');
  if (!canJoinAt(origin)) say(`gpd: warning: nobody can join at ${origin}: ${NEEDS_NAME}; set GPD_BASE_URL`);
  const { link, until } = invited;
  print({ name, role, kid, link, until: isoTime(until) }, () => [link]);
}

const describe = ({ name, kid, role, createdAt, joinedAt, inviteUntil }: StaffMember) => ({
  name,
  kid,
  role,
  invitedAt: isoTime(createdAt),
  joinedAt: iso(joinedAt),
  inviteUntil: joinedAt === null ? isoTime(inviteUntil) : null,
});

async function list({ open }: CommandContext): Promise<void> {
  const { database } = await open();
  const members = (await listStaff(database)).map(describe);
  printTable(members, 'no staff; `gpd staff invite` adds somebody', {
    NAME: 'name',
    KID: 'kid',
    ROLE: 'role',
    JOINED: ({ joinedAt, inviteUntil }) => joinedAt ?? `invited until ${inviteUntil}`,
  });
}

/** A person who was only invited cannot sign in yet, so a tenant needs another DPO who has joined. */
function isLastDpo(staff: readonly StaffMember[], { kid, id, role }: StaffMember): boolean {
  const colleagues = staff.filter((other) => other.kid === kid && other.id !== id && other.joinedAt !== null);
  return role === 'dpo' && colleagues.every((other) => other.role !== 'dpo');
}

async function remove(
  { open, tenant, by, recordEnded }: CommandContext,
  name: string,
  options: DestructiveFlags,
): Promise<void> {
  const { database } = await open();
  const member = await findByName(database, name);
  if (!member) throw notFound(`no staff named ${name}; \`gpd staff list\` shows them`);
  const isLast = isLastDpo(await listStaff(database), member);
  if (isLast)
    say(`gpd: warning: ${name} is the last dpo of ${member.kid}; invite another with \`gpd staff invite\``);
  if (options.dryRun === true) {
    print({ ...describe(member), dryRun: true }, () => [
      `would be removed: ${name}, ${member.role} of ${member.kid}`,
    ]);
    return;
  }
  const consequence = `Removing ${name}: their passkey and sessions end`;
  await confirmOnTerminal(options, isLast ? `${consequence}, and ${member.kid} has no dpo` : consequence);
  const { rightsKey } = await tenant(member.kid);
  await removeStaff(database, member, staffRef(rightsKey, member), await by(member.kid));
  await recordEnded(`${name} is removed`);
  print(describe(member), () => [`${name} is removed; their passkey and sessions no longer work`]);
}
