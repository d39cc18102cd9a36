import { userInfo } from 'node:os';
import type { Config } from '../config.ts';
import type { InstallationAct } from '../lib/act.ts';
import { orElse } from '../lib/functions.ts';
import type { Store } from '../tenants/installation-files.ts';
import { operatorsOf } from '../tenants/operators-service.ts';
import { noSuchTenant, within, withStore } from './run.ts';

/** A container's user may have a number and no name. */
export const accountName = (): string =>
  orElse(() => userInfo().username, `uid ${process.getuid?.() ?? 'unknown'}`);

async function contextOf(store: Store, config: Config) {
  const actorOf = await operatorsOf(store, accountName());
  return {
    store,
    config,
    /** The person at this terminal, now, for the audit log. @throws {CommandFailed} when there is no such tenant */
    by: (kid: string) => {
      const actor = actorOf(kid);
      if (!actor) throw noSuchTenant(kid);
      return { ref: actor.ref, role: 'operator' as const, at: Date.now() };
    },
    /** The same of what concerns every tenant. */
    byAll: (): InstallationAct => ({ actorOf, at: Date.now() }),
  };
}

export type OperatorContext = Awaited<ReturnType<typeof contextOf>>;

/** Opens the store for a command that changes something on an operator's word. */
export function withOperator<T>(work: (context: OperatorContext) => Promise<T>): Promise<T> {
  return withStore(async (store, config) => work(await contextOf(store, config)));
}

export const onOperator = within(withOperator<void>);
