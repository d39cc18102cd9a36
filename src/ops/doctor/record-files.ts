import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { replaceFile } from '../../db/own-files.ts';
import { tryOr } from '../../lib/errors.ts';
import type { Report } from './doctor-service.ts';

/**
 * The result of the last `gpd doctor --record`, for the metrics of this node's server. It is a file because
 * half of the checks are about this machine, and because the database may be what fails. It has no MAC: a
 * writer of the data directory can change it.
 */

const count = z.number().int().nonnegative();
const recordSchema = z.strictObject({
  at: count,
  counts: z.strictObject({ pass: count, warn: count, fail: count, skipped: count }),
});
export type DoctorRecord = z.infer<typeof recordSchema>;

const pathOf = (dataDir: string): string => join(dataDir, 'last-doctor');

export function writeDoctorRecord(dataDir: string, { counts }: Pick<Report, 'counts'>, at: number): void {
  const record: DoctorRecord = { at, counts };
  replaceFile(pathOf(dataDir), `${JSON.stringify(record)}\n`);
}

/** Null: nobody recorded one, or it cannot be read. */
export function readDoctorRecord(dataDir: string): DoctorRecord | null {
  return tryOr(() => recordSchema.parse(JSON.parse(readFileSync(pathOf(dataDir), 'utf8'))), null);
}
