import { userInfo } from 'node:os';
import type { Config } from '../config.ts';
import type { Act, InstallationAct } from '../lib/act.ts';
import { orElse } from '../lib/or-else.ts';
import type { OpenedStore, OpenOptions } from '../tenants/installation-files.ts';
import { operatorsOf } from '../tenants/operators-service.ts';
import { noSuchTenant, withStore } from './run.ts';

/** A container's user may have a number and no name. */
export const accountName = (): string =>
  orElse(() => userInfo().username, `uid ${process.getuid?.() ?? 'unknown'}`);

export interface OperatorContext {
  readonly store: OpenedStore;
  readonly config: Config;
  /** The person at this terminal, now, for the audit log. @throws {CommandFailed} when there is no such tenant */
  readonly by: (kid: string) => Act & { readonly role: 'operator' };
  /** The same of what concerns every tenant. */
  readonly byAll: () => InstallationAct;
}

/** Opens the store for a command that changes something on an operator's word. */
export function withOperator<T>(
  work: (context: OperatorContext) => Promise<T>,
  options: OpenOptions = {},
): Promise<T> {
  const run = async (store: OpenedStore, config: Config): Promise<T> => {
    const actorOf = await operatorsOf(store, accountName());
    return work({
      store,
      config,
      by: (kid) => {
        const actor = actorOf(kid);
        if (!actor) throw noSuchTenant(kid);
        return { ref: actor.ref, role: 'operator', at: Date.now() };
      },
      byAll: () => ({ actorOf, at: Date.now() }),
    });
  };
  return withStore(run, options);
}

export const onOperator =
  <Given extends unknown[]>(action: (...given: Given) => (context: OperatorContext) => Promise<void>) =>
  (...given: Given): Promise<void> =>
    withOperator(action(...given));
