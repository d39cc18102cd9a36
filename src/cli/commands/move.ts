import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import { type CommandContext, command, example, type Flags } from '../command-service.ts';
import { misused, print } from '../io-service.ts';
import { createBar } from '../progress-service.ts';
import { restoreInto } from './restore.ts';

export function define(move: Command): void {
  move
    .requiredOption('--to <url>', 'postgres://… (password from PGPASSFILE), or a new SQLite file')
    .option('--from <backup>', 'copy the data from this backup instead')
    .addHelpText('after', example('gpd move --to postgres://gpd@db.internal/gpd'))
    .action(command(moveData));
}

const isPostgres = (to: string): boolean => /^postgres(ql)?:\/\//.test(to);

/** The target must be the other kind of database: PostgreSQL's own tools copy it to another PostgreSQL. */
function targetOf({ database_url: url }: Config, to: string): string {
  if (url === null && !isPostgres(to))
    throw misused('--to must be postgres://…, because the data is in SQLite');
  if (url !== null && isPostgres(to)) throw misused('--to must be a file, because the data is in PostgreSQL');
  return isPostgres(to) ? to : resolve(to);
}

async function fromBackup(config: Config, to: string, backup: string): Promise<void> {
  const { requireEmpty } = await import('../../ops/move-service.ts');
  if (!isPostgres(to)) throw misused('--from needs --to postgres://…; use gpd restore for SQLite');
  await requireEmpty(to);
  await restoreInto({ ...config, database_url: to }, backup, { yes: true });
}

async function moveData({ config }: CommandContext, options: Flags<'from'> & { readonly to: string }) {
  if (options.from !== undefined) return fromBackup(config, options.to, options.from);
  const to = targetOf(config, options.to);
  const { move } = await import('../../ops/move-service.ts');
  const bar = createBar('rows');
  const onRows = (done: number, total: number): void => bar.update({ done, bytes: done, totalBytes: total });
  const moved = await move(config, to, onRows).finally(() => bar.end());
  const rows = Object.values(moved.rows).reduce((sum, count) => sum + count, 0);
  print(moved, () => [
    `moved  ${moved.from} to ${moved.to}`,
    `rows   ${rows.toLocaleString('en')}, compared one by one`,
    ...moved.logs.map(
      ({ kid, size, root }) => `log    ${kid}: ${size.toLocaleString('en')} entries, root ${root}`,
    ),
    `The old database is no longer used. Delete it: erasures no longer reach it.`,
    isPostgres(to)
      ? 'Next: set GPD_DATABASE_URL, then gpd serve'
      : 'Next: unset GPD_DATABASE_URL, then gpd serve',
  ]);
}
