import type { Config } from '../config.ts';
import { recordEnded } from '../rights/erase/ended.ts';
import { outsideOf } from '../rights/erase/erasure-log.ts';
import type { Store } from '../tenants/installation-files.ts';
import { failed } from './output.ts';

/** Writes to erasures.log what a command has ended. @throws {CommandFailed} that says what is done all the same */
export async function recordOutside(store: Store, config: Config, done: string): Promise<void> {
  try {
    await recordEnded(outsideOf(store, config), Date.now());
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw failed(
      `${done}, but erasures.log could not be written (${why}), so a restore of an older backup would undo this: repeat the command, or start gpd serve, which retries every minute`,
    );
  }
}
