import { createWriteStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createFolder } from '../../db/own-files.ts';
import type { LogService } from '../../log/service.ts';
import { type ContestRow, decryptRow } from '../../rights/contests/store.ts';
import { appendRemoval, erasureLogAccess } from '../../rights/erase/erasure-log-service.ts';
import { tablesWhere } from '../../rights/person-map.ts';
import { countProtected, removeTenant as removeRows, tenantRows } from '../../rights/tenant-rows-store.ts';
import { createTenantStore } from '../../tenants/tenant-store.ts';
import { type CommandContext, type Flags, noSuchTenant } from '../command-service.ts';
import { alignColumns, confirm, type DestructiveFlags, EXIT, failed, io, print, say } from '../io-service.ts';
import { expectNoFile } from '../new-files.ts';
import { createCount } from '../progress-service.ts';

/**
 * Tables whose rows --export writes, one NDJSON file per table. Keys, and counters that mean nothing
 * elsewhere, are left out.
 */
const EXPORTED = tablesWhere(({ exported }) => exported.includes('tenant'));

async function* ndjsonLines(
  rows: AsyncIterable<object>,
  encodeRow: (row: object) => object,
): AsyncGenerator<string> {
  for await (const row of rows) yield `${JSON.stringify(encodeRow(row))}\n`;
}

async function* rowsBefore(rows: AsyncIterable<object>, size: number): AsyncGenerator<object> {
  for await (const row of rows) if (Number((row as { seq: unknown }).seq) < size) yield row;
}

/**
 * Signs a checkpoint over all entries: with its public key it proves the exported log after the signing key
 * is destroyed.
 */
async function signLog(log: LogService, kid: string) {
  const [checkpoint, vkey] = [await log.lastCheckpoint(kid), await log.vkey(kid)];
  if (checkpoint && vkey)
    return { size: checkpoint.size, texts: { checkpoint: checkpoint.text, vkey: `${vkey}\n` } };
  throw failed(`the log of ${kid} cannot be signed, and nothing was removed: see gpd doctor`);
}

async function exportTenant({ services }: CommandContext, kid: string, directory: string): Promise<string[]> {
  expectNoFile(directory);
  const { database, log, rights } = await services();
  const { size, texts } = await signLog(log, kid);
  createFolder(directory);
  const files: string[] = [];
  for (const [name, text] of Object.entries(texts)) {
    const file = join(directory, name);
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
    files.push(file);
  }
  for (const name of EXPORTED) {
    const file = join(directory, `${name}.ndjson`);
    say(`exporting ${name}`);
    const out = createWriteStream(file, { flags: 'wx', mode: 0o600 });
    const encodeRow = (row: object): object =>
      name === 'contests' ? decryptRow(row as ContestRow, rights.contestTexts) : row;
    const rows = tenantRows(database, kid, name);
    // Only entries that the checkpoint covers: a running server may append more.
    await pipeline(
      Readable.from(ndjsonLines(name === 'ledger_entries' ? rowsBefore(rows, size) : rows, encodeRow)),
      out,
    );
    files.push(file);
  }
  return files;
}

export async function removeTenant(
  context: CommandContext,
  kid: string,
  options: DestructiveFlags & Flags<'export'>,
): Promise<void> {
  const store = await context.open();
  const { database } = store;
  const logAccess = erasureLogAccess(store, context.config);
  const tenant = await createTenantStore(database).get(kid);
  const { openContests, heldDevices } = await countProtected(database, kid);
  if (openContests + heldDevices > 0)
    say(
      `gpd: warning: ${kid} has open contests (${openContests}) and devices under a legal hold (${heldDevices})`,
    );
  if (options.dryRun === true) {
    if (!tenant) throw noSuchTenant(kid);
    return print({ kid, dryRun: true, origins: tenant.settings.origins, openContests, heldDevices }, () => [
      `would remove tenant ${kid} with all its verdicts, contests, consent records, keys and its log`,
      'Nothing was changed.',
    ]);
  }
  const consequence = `this removes tenant ${kid} with all its data, its log and its keys, and cannot be undone`;
  await confirm(options, consequence);
  // A missing tenant has no export, but rows that an interrupted removal left are still deleted below.
  const directory = tenant === null ? undefined : options.export;
  const files = directory === undefined ? [] : await exportTenant(context, kid, directory);
  const { onProgress, end } = createCount('rows');
  const counts = await removeRows(database, kid, {
    // Recorded before anything is deleted, so that a restore repeats even an interrupted removal.
    onStopped: () =>
      appendRemoval(logAccess, kid, Date.now()).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        throw failed(
          `tenant ${kid} answers nobody any more and keeps its data, because erasures.log could not be written (${reason}): repeat the command`,
        );
      }),
    onProgress,
  }).finally(end);
  if (!counts) throw noSuchTenant(kid);
  await database.vacuum();
  const incomplete = !(await database.truncateLog());
  print({ kid, removed: counts, exported: files, incomplete }, () => [
    ...alignColumns(
      Object.entries(counts)
        .filter(([, count]) => count > 0)
        .map(([name, count]) => [name, count.toLocaleString('en')]),
    ),
    `tenant ${kid} is removed${files.length > 0 ? `; its data is in ${options.export}` : ''}`,
    ...(incomplete
      ? ['Another process has the database open: deleted bytes may stay in the file until it ends.']
      : []),
  ]);
  if (incomplete) io().exitCode = EXIT.incomplete;
}
