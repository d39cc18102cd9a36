import { readFileSync, writeFile } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { type Clock, HOUR } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';

/**
 * Notes for `gpd doctor` that a peer sent X-Forwarded-For without being a trusted proxy: if it is a proxy,
 * all clients behind it share one rate limit. The note has the time and the setting, never the peer.
 */

const noteSchema = z.strictObject({ at: z.number(), trusted: z.string() });
type ForwardedNote = z.infer<typeof noteSchema>;

const pathOf = (config: Config): string => join(config.data_dir, 'stranger-forwarded');

const FIRST_NOTICE = {
  event: 'stranger-forwarded',
  hint: 'X-Forwarded-For from a peer that GPD_TRUSTED_PROXIES does not name is ignored',
};

/**
 * Writes the note at most once an hour, so that strangers cannot cause many writes. `onFirst` is called once.
 */
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
    // A failed write is ignored: the log has the event too.
    writeFile(pathOf(config), `${JSON.stringify(note)}\n`, { mode: 0o600 }, () => {});
  };
}

export function readForwardedNote(config: Config): ForwardedNote | null {
  const path = pathOf(config);
  return tryOr(() => noteSchema.parse(JSON.parse(readFileSync(path, 'utf8'))), null);
}
