import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { baseUrl, type Config } from '../config.ts';
import { orElse } from '../lib/functions.ts';
import { unnamedSettings } from '../rights/dsar/dsar.ts';
import { BadRecipient, type ExportRecipient, readRecipient } from '../rights/dsar/envelope.ts';
import { openArchiveSigner } from '../rights/dsar/signer.ts';
import { makeExports } from '../rights/dsar/staff-export-service.ts';
import type { Store } from '../tenants/installation-files.ts';
import { whileRunning } from './broken-off.ts';
import { command, withContext } from './command.ts';
import { expectNoFile, writeNewFile } from './new-file.ts';
import { failed, misused, notFound, print, say, wantsJson } from './output.ts';
import { makeBar, QUIET_MS } from './progress.ts';
import { checkKid, type Flags, requireTenant, type TargetOptions, targetBody } from './run.ts';

export type ExportOptions = TargetOptions &
  Flags<'encryptTo'> & { readonly tenant: string; readonly out: string };

function recipientOf(file: string | undefined): ExportRecipient | undefined {
  if (file === undefined) return undefined;
  const bytes = orElse(() => readFileSync(file), null);
  if (bytes === null) throw notFound(`cannot read ${file}: name the recipient's certificate`);
  try {
    return readRecipient(bytes, Date.now());
  } catch (error) {
    if (error instanceof BadRecipient) throw misused(`${file}: ${error.message}`);
    throw error;
  }
}

const signerOf = (store: Store, config: Config) => (): ReturnType<typeof openArchiveSigner> =>
  openArchiveSigner({
    ...store,
    clock: Date.now,
    host: new URL(baseUrl(config)).hostname,
    onMake: () => say('Creating the key that signs archives (once).'),
  });

/** An interrupted export leaves no part of a person's data behind. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController();
  const stop = (): void => abort.abort(failed('interrupted; no file was written'));
  try {
    return await whileRunning(stop, () => work(abort.signal));
  } catch (error) {
    throw abort.signal.aborted ? abort.signal.reason : error;
  }
}

export async function exportArchive(options: ExportOptions): Promise<void> {
  const kid = checkKid(options.tenant);
  const target = targetBody(options);
  if (options.out === '-') throw misused('--out must name a file; an archive cannot go to standard output');
  const file = resolve(options.out);
  expectNoFile(file);
  const recipient = recipientOf(options.encryptTo);
  await withContext(async (context) => {
    const { role, ref } = await context.operator(kid);
    const { store, config, database } = context;
    const { tenants, rights } = await context.services();
    const signer = signerOf(store, config);
    const exports = makeExports({
      database,
      tenantOf: tenants.find,
      clock: Date.now,
      api: rights.api,
      signer,
    });
    const dsar = await exports.find(kid, target);
    if (!dsar) throw notFound(`nothing is held about this id in ${kid}`);
    const unnamed = unnamedSettings((await requireTenant(database, kid)).settings);
    if (unnamed.length > 0)
      say(
        `gpd: the archive does not say who is responsible or whom to contact; set ${unnamed.map((name) => `${name}=…`).join(' ')} with \`gpd tenants set ${kid}\` and export again`,
      );
    const bar = makeBar('decisions', QUIET_MS);
    const onProgress = (done: number, total: number): void =>
      bar.update({ done, bytes: done, totalBytes: total });
    const written = await interruptible((signal) =>
      writeNewFile(file, (output) =>
        exports.write(dsar, { role, ref }, output, { recipient, signal, onProgress }),
      ),
    ).finally(bar.end);
    const { decisions, sha256, size, encrypted, signer: signedBy } = written;
    print({ file, decisions, sha256, size, encrypted, signer: signedBy }, () => [
      `${file}  ${decisions.toLocaleString('en')} ${decisions === 1 ? 'decision' : 'decisions'}, ${size.toLocaleString('en')} bytes${encrypted ? ', encrypted' : ''}`,
      `SHA-256  ${sha256}`,
    ]);
    if (!encrypted) say('It is not encrypted: deliver it over a confidential channel, or use --encrypt-to.');
  });
}

export const printCertificate = command(async ({ store, config }) => {
  const signer = await signerOf(store, config)();
  const { fingerprint, notAfter } = signer;
  const value = { certificate: signer.certificate, fingerprint, notAfter: notAfter.toISOString() };
  print(value, () => [signer.certificate.trimEnd()]);
  if (!wantsJson()) say(`SHA-256 fingerprint ${fingerprint}, valid until ${value.notAfter}`);
});
