import { describe, expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { createOwn, type Own } from './support/own.ts';

/** A trigger undoes what a command writes: the command fails, and nothing is changed. */

const ignore = (table: string, event: string): string =>
  `CREATE TRIGGER undo BEFORE ${event} ON ${table} BEGIN SELECT RAISE(IGNORE); END`;
const reset = (table: string, column: string): string =>
  `CREATE TRIGGER undo AFTER UPDATE OF ${column} ON ${table} WHEN NEW.${column} IS NOT OLD.${column}
    BEGIN UPDATE ${table} SET ${column} = OLD.${column} WHERE rowid = NEW.rowid; END`;

interface Door {
  readonly name: string;
  readonly trigger: string;
  /** @returns the line of the command */
  readonly prepare: (house: Own) => Promise<string>;
  readonly says: string;
}

async function revocation({ json }: Own): Promise<string> {
  const { id } = await json<{ id: string }>(`apikeys create ${KID} --scope secret --name backend`);
  return `apikeys revoke ${id}`;
}

async function staffRemoval({ gpd }: Own): Promise<string> {
  await gpd(`staff invite Rosa --role dpo --tenant ${KID}`);
  return 'staff remove Rosa';
}

async function keyDestruction({ gpd }: Own): Promise<string> {
  await gpd(`keys rotate ${KID}`);
  return `keys destroy ${KID} 1 --yes`;
}

async function webhookRemoval({ json }: Own): Promise<string> {
  const { id } = await json<{ id: string }>(`webhooks add ${KID} https://hooks.example/x`);
  return `webhooks remove ${KID} ${id} --yes`;
}

async function purposeRemoval({ gpd }: Own): Promise<string> {
  await gpd(`consent purposes set ${KID} news --title News`);
  return `consent purposes remove ${KID} news --yes`;
}

async function agentRemoval({ dataDir }: Own): Promise<string> {
  const row = "'https://agent.example/.well-known/http-message-signatures-directory', 'pinned', '[]'";
  await execute(dataDir, `INSERT INTO agent_directories (url, source, keys) VALUES (${row})`);
  return 'agents remove https://agent.example --yes';
}

const tenantRemoval = (): Promise<string> => Promise.resolve(`tenants remove ${KID} --yes`);

const door = (name: string, trigger: string, prepare: Door['prepare'], says: string): Door => ({
  name,
  trigger,
  prepare,
  says,
});

const DOORS: readonly Door[] = [
  door('apikeys revoke, reset', reset('api_keys', 'revoked_at'), revocation, 'is not revoked'),
  door('apikeys revoke, ignored', ignore('api_keys', 'UPDATE'), revocation, 'is not revoked'),
  door('staff remove, reset', reset('staff', 'removed_at'), staffRemoval, 'staff member Rosa is not removed'),
  door('staff remove, ignored', ignore('staff', 'UPDATE'), staffRemoval, 'staff member Rosa is not removed'),
  door('keys destroy, reset', reset('seal_keys', 'wrapped_private'), keyDestruction, 'is not destroyed'),
  door('keys destroy, ignored', ignore('seal_keys', 'UPDATE'), keyDestruction, 'is not destroyed'),
  door('webhooks remove', ignore('webhooks', 'DELETE'), webhookRemoval, 'is not removed'),
  door('purposes remove', ignore('purposes', 'DELETE'), purposeRemoval, 'purpose news is not removed'),
  door('agents remove', ignore('agent_directories', 'DELETE'), agentRemoval, 'is not removed'),
  door('tenants remove', ignore('tenants', 'DELETE'), tenantRemoval, `tenant ${KID} is not removed`),
  door(
    'tenants remove, rows of it',
    ignore('ledger_entries', 'DELETE'),
    tenantRemoval,
    `tenant ${KID} is not removed, as ledger_entries has rows of it`,
  ),
];

// Guards against: `apikeys revoke` exited with 0 while the key still worked.
describe.concurrent('a write that the database undoes', () => {
  it.each(DOORS)('$name', async ({ trigger, prepare, says }) => {
    const house = await createOwn();
    const line = await prepare(house);
    await execute(house.dataDir, trigger);
    const ran = await house.gpd(line);
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toContain(says);
    expect(ran.stderr).toContain('the database undid the change, as a trigger does; `gpd doctor` names it');
    await execute(house.dataDir, 'DROP TRIGGER undo');
    expect(await house.gpd(line)).toMatchObject({ code: 0 });
  });
});
