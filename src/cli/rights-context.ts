import { randomBytes } from 'node:crypto';
import { makeCheckpointBook } from '../log/checkpoint-files.ts';
import { makeLogService } from '../log/service.ts';
import { makeRights } from '../rights/services-make.ts';
import { type EraseTargetBody, eraseTargetSchema } from '../schema/rights.ts';
import { readDirectory } from './directory.ts';
import { type OperatorContext, withOperator } from './operator.ts';
import { misused, say } from './output.ts';
import { checked, type Flags, within } from './run.ts';

async function contextOf({ store, config, by }: OperatorContext) {
  const { database } = store;
  const { consentTenant: tenantOf, tenant: ingestTenantOf } = await readDirectory(store);
  const book = makeCheckpointBook(config.data_dir, store.serverSecret);
  const rights = makeRights(
    { store, config, tenantOf, ingestTenantOf, clock: Date.now, random: randomBytes },
    {
      // The process ends with its command.
      patienceMs: Number.POSITIVE_INFINITY,
      onFault: () =>
        say('gpd: the erasure is recorded, but finishing it failed; `gpd erase resume` tries again'),
    },
  );
  return {
    ...rights,
    store,
    config,
    log: makeLogService({ database, book, keysOf: tenantOf, clock: Date.now }),
    ingestTenantOf,
    /** The person at this terminal, by keyed reference. @throws {CommandFailed} when there is no such tenant */
    operatorOf: (kid: string) => ({ kid, role: 'operator' as const, ref: by(kid).ref }),
  };
}

export type RightsContext = Awaited<ReturnType<typeof contextOf>>;

/** The rights services on the database, for one command. */
export function withRights<T>(work: (context: RightsContext) => Promise<T>): Promise<T> {
  return withOperator(async (context) => work(await contextOf(context)));
}

export const onRights = within(withRights<void>);

export type TargetOptions = Flags<'visitor' | 'request' | 'principal'>;

/** Exactly one of --visitor, --request and --principal. */
export function targetBody(options: TargetOptions): EraseTargetBody {
  const ids = { visitorId: options.visitor, requestId: options.request, principalId: options.principal };
  const named = Object.entries(ids).filter(([, id]) => id !== undefined);
  if (named.length !== 1)
    throw misused('name one person: exactly one of --visitor <id>, --request <id>, --principal <id>');
  return checked(eraseTargetSchema, Object.fromEntries(named), 'the id: ');
}
