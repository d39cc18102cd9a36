import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Config, ConfigError } from '../config.ts';
import { HOUR } from '../lib/clock.ts';

/**
 * DATA_DIR/erasures.log: one line an erasure, append-only, outside the database, so that a restored database can be made
 * to forget again. Who was erased is only there as a keyed reference.
 */

const lineSchema = z.looseObject({
  v: z.literal(1),
  receiptId: z.string(),
  tenant: z.string(),
  /** Epoch milliseconds, or RFC 3339. */
  at: z.union([z.number(), z.iso.datetime().transform((text) => Date.parse(text))]),
  target: z.looseObject({ kind: z.string(), ref: z.string() }),
});

export type ErasureLine = z.infer<typeof lineSchema>;

export function erasureLogPath(config: Config): string {
  return join(config.data_dir, 'erasures.log');
}

/**
 * The complete lines. What a crash cut off in the middle of a line was never answered to anybody.
 */
function completeLines(text: string): string[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.trim() !== '');
}

export function readErasureLines(config: Config): readonly string[] {
  const path = erasureLogPath(config);
  return existsSync(path) ? completeLines(readFileSync(path, 'utf8')) : [];
}

/** All lines of both, each once, in the order of this directory's log. */
export function mergeErasures(ours: readonly string[], carried: readonly string[]): string[] {
  return [...new Set([...ours, ...carried])];
}

export function linesOfText(text: string): readonly string[] {
  return completeLines(text);
}

/** @throws {ConfigError} an erasure that cannot be read cannot be done again */
export function parseErasures(lines: readonly string[], where: string): ErasureLine[] {
  return lines.map((line, i) => {
    try {
      return lineSchema.parse(JSON.parse(line));
    } catch {
      throw new ConfigError(
        `${where}: line ${i + 1} is damaged, and the erasure that it tells of could not be repeated: put the file back from a copy`,
      );
    }
  });
}

/** An erasure writes its line before it is done: one that is so young may not be in a copy that was taken then. */
const MARGIN_MS = HOUR;

/** Those that a copy of the database, begun at `copiedAt` with the lines `carried`, may not have done. */
export function erasuresSince(
  lines: readonly string[],
  carried: readonly string[],
  copiedAt: number,
  where: string,
): ErasureLine[] {
  const done = new Set(carried);
  return parseErasures(lines, where).filter(
    ({ at }, i) => at >= copiedAt - MARGIN_MS || !done.has(lines[i] ?? ''),
  );
}
