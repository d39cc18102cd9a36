import { readFileSync, writeFile } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { type Clock, HOUR } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';

/**
 * A peer that is not trusted sent X-Forwarded-For: behind a proxy that nobody named, all clients share one rate limit. A
 * note in the data directory tells `gpd doctor`; it names the time and the setting, never the peer.
 */

const noteSchema = z.strictObject({ at: z.number(), trusted: z.string() });
type ForwardedNote = z.infer<typeof noteSchema>;

const pathOf = (config: Config): string => join(config.data_dir, 'stranger-forwarded');

const FIRST_NOTICE = {
  event: 'stranger-forwarded',
  hint: 'X-Forwarded-For from a peer that GPD_TRUSTED_PROXIES does not name is ignored',
};

/** At most once an hour: strangers may not make this server write. `onFirst` is called once. */
export function createForwardedNote(
  config: Config,
  clock: Clock,
  onFirst: (about: typeof FIRST_NOTICE) => void,
): () => void {
  let notedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock();
    if (now - notedAt < HOUR) return;
    if (notedAt === Number.NEGATIVE_INFINITY) onFirst(FIRST_NOTICE);
    notedAt = now;
    const note: ForwardedNote = { at: now, trusted: config.trusted_proxies.join(' ') };
    // Lost when the disk is full: the log has said it.
    writeFile(pathOf(config), `${JSON.stringify(note)}\n`, { mode: 0o600 }, () => {});
  };
}

export function readForwardedNote(config: Config): ForwardedNote | null {
  const path = pathOf(config);
  return tryOr(() => noteSchema.parse(JSON.parse(readFileSync(path, 'utf8'))), null);
}
