import { randomBytes } from 'node:crypto';
import type { Config } from '../config.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import { makeCheckpointBook } from '../log/checkpoint-files.ts';
import { type LogService, makeLogService } from '../log/service.ts';
import { makeRights, type RightsServices } from '../rights/services-make.ts';
import { type EraseTargetBody, eraseTargetSchema } from '../schema/rights.ts';
import type { OpenOptions, Store } from '../tenants/installation-files.ts';
import { readDirectory } from './directory.ts';
import { type OperatorContext, withOperator } from './operator.ts';
import { misused, say } from './output.ts';
import { checked, type Flags } from './run.ts';

export interface RightsContext extends RightsServices {
  readonly store: Store;
  readonly config: Config;
  readonly log: LogService;
  readonly ingestTenantOf: (kid: string) => IngestTenant | undefined;
  /** The person at this terminal, by keyed reference. @throws {CommandFailed} when there is no such tenant */
  readonly operatorOf: (kid: string) => {
    readonly kid: string;
    readonly role: 'operator';
    readonly ref: string;
  };
}

/** The rights services on the database, for one command. */
export function withRights<T>(
  work: (context: RightsContext) => Promise<T>,
  options: OpenOptions = {},
): Promise<T> {
  const run = async ({ store, config, by }: OperatorContext): Promise<T> => {
    const { database } = store;
    const directory = await readDirectory(store);
    const tenantOf = (kid: string) => directory.consentTenant(kid);
    const ingestTenantOf = (kid: string) => directory.tenant(kid);
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
    return work({
      ...rights,
      store,
      config,
      log: makeLogService({ database, book, keysOf: tenantOf, clock: Date.now }),
      ingestTenantOf,
      operatorOf: (kid) => ({ kid, role: 'operator', ref: by(kid).ref }),
    });
  };
  return withOperator(run, options);
}

export const onRights =
  <Given extends unknown[]>(action: (...given: Given) => (context: RightsContext) => Promise<void>) =>
  (...given: Given): Promise<void> =>
    withRights(action(...given));

export type TargetOptions = Flags<'visitor' | 'request' | 'principal'>;

/** Exactly one of --visitor, --request and --principal. */
export function targetBody(options: TargetOptions): EraseTargetBody {
  const { visitor, request, principal } = options;
  const body = {
    ...(visitor === undefined ? {} : { visitorId: visitor }),
    ...(request === undefined ? {} : { requestId: request }),
    ...(principal === undefined ? {} : { principalId: principal }),
  };
  if (Object.keys(body).length !== 1)
    throw misused('name one person: exactly one of --visitor <id>, --request <id>, --principal <id>');
  return checked(eraseTargetSchema, body, 'the id: ');
}
