import { closeSync, createReadStream, readSync } from 'node:fs';
import type { Command } from 'commander';
import { CsvError, parse } from 'csv-parse';
import { z } from 'zod';
import type { LastChoices } from '../../consent/import-store.ts';
import type { ConsentRecord, ImportOutcome } from '../../consent/service.ts';
import { NotRegularFile, openRegularFile } from '../../db/own-files.ts';
import { tryOr } from '../../lib/errors.ts';
import { parseStrictJson } from '../../lib/json.ts';
import { isPlainText } from '../../lib/text.ts';
import { principalIdSchema, purposeIdSchema } from '../../schema/bundle.ts';
import { explainIssue } from '../../schema/explain-issue.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { addCommand, type CommandContext, type Flags } from '../command-service.ts';
import { misused, notFound, print, say } from '../io-service.ts';
import { createBar, QUIET_MS } from '../progress-service.ts';
import { splitLines } from '../replay/line-files.ts';

/**
 * `gpd consent import`: records of another system. The whole file is checked before the first one is
 * recorded.
 */
export function defineImport(consent: Command): void {
  addCommand(consent, 'import <kid>', importFile, {
    about: 'record choices that another system kept, with their own dates; the same file twice adds nothing',
    example: 'gpd consent import shop records.csv --dry-run',
  })
    .argument(
      '<file>',
      'CSV with a header, or NDJSON: principalId, purpose, action (grant, deny or withdraw), and where known recordedAt, policyVersion (default: the latest) and evidence',
    )
    .option('--dry-run', 'show what would be recorded; change nothing');
}

const MAX_NAMED = 20;
/** Records that are written to the log at once. */
const CHUNK = 1000;
const MAX_EVIDENCE = 1000;
/** Bytes of a line of NDJSON, characters of a row of CSV; a good one is far shorter. */
const MAX_RECORD = 65_536;
/** A decoder of UTF-8 puts it for bytes that it cannot read. */
const REPLACED = '\u{fffd}';

const rowSchema = z.strictObject({
  principalId: principalIdSchema,
  purpose: purposeIdSchema,
  action: z.enum(['grant', 'deny', 'withdraw']),
  recordedAt: z
    .union(
      [z.iso.datetime({ offset: true }), z.iso.date()],
      'a date, or a time with its zone: 2024-05-01T09:30:00Z',
    )
    .transform((text) => Date.parse(text))
    .optional(),
  policyVersion: z.coerce.number().int().min(0).max(2_147_483_647).optional(),
  evidence: z.string().max(MAX_EVIDENCE).refine(isPlainText, 'text without control characters').optional(),
});

interface Row {
  readonly line: number;
  readonly value: unknown;
}

/** Names the line and the field but not the value, which may be about a person. */
function problemOf(line: number, error: z.ZodError): string {
  const [issue] = error.issues;
  const field = issue?.code === 'unrecognized_keys' ? issue.keys[0] : issue?.path[0];
  return field === undefined
    ? `line ${line}: ${issue?.message}`
    : `line ${line}, field ${String(field)}: ${issue?.message}`;
}

/** The file is read more than once, so a pipe will not do. @throws {CommandFailed} when it cannot be read */
function openRecords(file: string): number {
  try {
    return openRegularFile(file);
  } catch (error) {
    if (error instanceof NotRegularFile) throw misused(error.message);
    throw notFound(`cannot read ${file}`);
  }
}

function isNdjson(file: string): boolean {
  const head = Buffer.alloc(64);
  const handle = openRecords(file);
  try {
    const text = head.toString('utf8', 0, readSync(handle, head)).replace(/^\u{feff}/u, '');
    return text.trimStart().startsWith('{');
  } finally {
    closeSync(handle);
  }
}

async function* ndjsonRows(file: string): AsyncGenerator<Row> {
  let line = 0;
  for await (const { text } of splitLines(createReadStream(file), MAX_RECORD)) {
    line += 1;
    if (text.trim() !== '') yield { line, value: tryOr(() => parseStrictJson(text), undefined) };
  }
}

/** @throws {CommandFailed} for a name that comes twice: programs differ in which cell they read */
function checkHeader(names: readonly string[]): string[] {
  const repeated = names.find((name, i) => names.indexOf(name) < i);
  if (repeated !== undefined) throw misused(`line 1: the column ${repeated} comes twice`);
  return [...names];
}

async function* csvRows(file: string): AsyncGenerator<Row> {
  const parser = parse({
    bom: true,
    columns: checkHeader,
    info: true,
    max_record_size: MAX_RECORD,
    skip_empty_lines: true,
    trim: true,
  });
  const read = createReadStream(file).on('error', (error) => parser.destroy(error));
  try {
    for await (const found of read.pipe(parser)) {
      const { record, info } = found as { record: Record<string, string>; info: { lines: number } };
      // CSV cannot leave a field out: an empty cell means a missing value.
      const cells = Object.entries(record).filter(([, cell]) => cell !== '');
      yield { line: info.lines, value: Object.fromEntries(cells) };
    }
  } catch (error) {
    if (error instanceof CsvError && error.code === 'CSV_MAX_RECORD_SIZE')
      throw misused(
        `${file}, line ${String(error['lines'])}, column ${String(error['column'])}: longer than ${MAX_RECORD} characters; look for a missing closing quote`,
      );
    if (error instanceof CsvError)
      throw misused(`${file}, line ${String(error['lines'])}: not valid CSV (${error.code})`);
    throw error;
  }
}

type CheckedRow =
  | { readonly record: ConsentRecord; readonly problem: null }
  | { readonly record: null; readonly problem: string };

function checkRow({ line, value }: Row, tenant: Tenant, now: number): CheckedRow {
  const rejectRow = (problem: string): CheckedRow => ({ record: null, problem });
  // Two ids that are written in another encoding would be one person.
  if (JSON.stringify(value)?.includes(REPLACED)) return rejectRow(`line ${line}: not UTF-8`);
  const { data, error } = rowSchema.safeParse(value, { error: explainIssue });
  if (error) return rejectRow(problemOf(line, error));
  const { recordedAt = null, policyVersion, evidence } = data;
  if (tenant.termsOf(data.purpose) === undefined)
    return rejectRow(
      `line ${line}, field purpose: the tenant has not defined it (\`gpd consent purposes set\`)`,
    );
  if (recordedAt !== null && recordedAt > now)
    return rejectRow(`line ${line}, field recordedAt: it is in the future`);
  const knownVersions = [tenant.rules.currentVersion, ...tenant.policies.map(({ version }) => version)];
  if (policyVersion !== undefined && !knownVersions.includes(policyVersion))
    return rejectRow(`line ${line}, field policyVersion: no such policy was published`);
  return { record: { ...data, recordedAt, policyVersion, evidence }, problem: null };
}

async function* readRecords(file: string, tenant: Tenant): AsyncGenerator<CheckedRow> {
  const now = Date.now();
  for await (const row of isNdjson(file) ? ndjsonRows(file) : csvRows(file)) yield checkRow(row, tenant, now);
}

/**
 * @returns the number of rows
 * @throws {CommandFailed} after it has named the first bad rows; nothing of such a file is recorded
 */
async function requireGoodRows(file: string, tenant: Tenant): Promise<number> {
  let [badRows, rows] = [0, 0];
  for await (const { problem } of readRecords(file, tenant)) {
    rows += 1;
    if (problem === null) continue;
    badRows += 1;
    if (badRows <= MAX_NAMED) say(problem);
  }
  if (badRows > 0)
    throw misused(`${file}: ${badRows} ${badRows === 1 ? 'row is' : 'rows are'} wrong; nothing was recorded`);
  return rows;
}

async function* chunksOf(records: AsyncIterable<CheckedRow>): AsyncGenerator<readonly ConsentRecord[]> {
  let chunk: ConsentRecord[] = [];
  for await (const { record } of records) {
    // Null only if the file changed after the check.
    if (record) chunk.push(record);
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

async function importFile(
  context: CommandContext,
  kid: string,
  file: string,
  { dryRun = false }: Flags<never, 'dryRun'>,
): Promise<void> {
  const tenant = await context.tenant(kid);
  const { service } = (await context.services()).consent;
  const total = await requireGoodRows(file, tenant);
  const bar = createBar('records', QUIET_MS);
  let done = 0;
  const counts: Record<ImportOutcome, number> = { recorded: 0, outdated: 0, erased: 0 };
  const lastChoices: LastChoices = new Map();
  try {
    for await (const records of chunksOf(readRecords(file, tenant))) {
      const outcomes = dryRun
        ? await service.previewImport(tenant, records, lastChoices)
        : await Promise.all(records.map((record) => service.importRecord(tenant, record)));
      for (const outcome of outcomes) counts[outcome] += 1;
      done += outcomes.length;
      bar.update({ done, bytes: done, totalBytes: total });
    }
  } finally {
    bar.end();
  }
  print({ kid, dryRun, ...counts }, () => [
    `${counts.recorded.toLocaleString('en')} ${dryRun ? 'would be recorded' : 'recorded'}`,
    `${counts.outdated.toLocaleString('en')} left out: gpd has this choice or a newer one`,
    ...(counts.erased > 0 ? [`${counts.erased.toLocaleString('en')} left out: the person was erased`] : []),
  ]);
}
