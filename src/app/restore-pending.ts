import { existsSync, readFileSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { type Config, ConfigError } from '../config.ts';
import { removeLeftStaging, replaceFile, syncPath } from './durable-file.ts';
import { type ErasureLine, parseErasures } from './erasure-log.ts';
import type { Store } from './store.ts';

/** DATA_DIR/restore-pending: erasures that a restored database has not done yet. While it is there nobody may listen. */

const markerSchema = z.strictObject({
  v: z.literal(1),
  /** When the restored database was copied. */
  backupAt: z.string(),
  restoredAt: z.string(),
  erasures: z.array(z.unknown()),
});

/** Does them again, whether or not the database still holds something of them. Resolves when all are durable. */
export type ReapplyErasures = (store: Store, lines: readonly ErasureLine[]) => Promise<void>;

export function pendingPath(config: Config): string {
  return join(config.data_dir, 'restore-pending');
}

export function writePending(
  config: Config,
  pending: {
    readonly backupAt: string;
    readonly restoredAt: string;
    readonly erasures: readonly ErasureLine[];
  },
): void {
  replaceFile(pendingPath(config), `${JSON.stringify({ v: 1, ...pending })}\n`);
}

/** Null: nothing was restored, or all is done. @throws {ConfigError} */
export function readPending(config: Config): readonly ErasureLine[] | null {
  const path = pendingPath(config);
  if (!existsSync(path)) return null;
  try {
    const { erasures } = markerSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
    return parseErasures(
      erasures.map((line) => JSON.stringify(line)),
      path,
    );
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`${path} is damaged: run \`gpd restore\` once more with the same backup`);
  }
}

/**
 * Before a server listens: repeats the erasures that came after the backup. A crash in between repeats them all.
 * @returns how many
 * @throws {ConfigError} when they cannot be repeated: then nobody listens
 */
export async function finishRestore(
  config: Config,
  store: Store,
  reapply: ReapplyErasures | undefined,
): Promise<number> {
  if (existsSync(config.data_dir)) removeLeftStaging(config.data_dir);
  const lines = readPending(config);
  if (lines === null) return 0;
  if (lines.length > 0) {
    if (!reapply) {
      throw new ConfigError(
        `${lines.length} erasures came after the restored backup, and this gpd cannot repeat them: upgrade it`,
      );
    }
    await reapply(store, lines);
  }
  unlinkSync(pendingPath(config));
  syncPath(dirname(pendingPath(config)));
  return lines.length;
}
