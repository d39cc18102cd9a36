import { resolve } from 'node:path';
import type { Command } from 'commander';
import { baseUrl, type Config } from '../../config.ts';
import { PEOPLE_LANGUAGES } from '../../lib/languages.ts';
import { unnamedSettings } from '../../rights/dsar/dsar.ts';
import { BadRecipient, type ExportRecipient, readRecipient } from '../../rights/dsar/envelope.ts';
import { openArchiveSigner } from '../../rights/dsar/signer-store.ts';
import { createExports } from '../../rights/dsar/staff-export-service.ts';
import type { Store } from '../../tenants/installation-files.ts';
import {
  addCommand,
  type CommandContext,
  checkOneOf,
  type Flags,
  readGivenFile,
  requireTenant,
  TENANT,
} from '../command-service.ts';
import { misused, notFound, print, say, wantsJson } from '../io-service.ts';
import { expectNoFile, writeNewFile } from '../new-files.ts';
import { createCount, runAbortable } from '../progress-service.ts';
import { type TargetOptions, targetBody } from './erase.ts';

export function define(dsar: Command): void {
  addCommand(dsar, 'export', exportArchive, {
    about: 'write everything held about a person to a signed archive; audited',
    example: 'gpd dsar export --tenant shop --principal alice --out alice.zip',
  })
    .option(...TENANT)
    .option('--visitor <id>', 'the visitorId of their device')
    .option('--request <id>', 'a requestId of theirs')
    .option('--principal <id>', 'their id in the consent ledger')
    .requiredOption('--out <file>', 'where to write; the file must not exist')
    .option('--language <language>', `of the summary: ${PEOPLE_LANGUAGES.join(', ')}`)
    .option('--encrypt-to <cert>', 'encrypt it to this certificate (RSA, PEM or DER)');
  addCommand(dsar, 'certificate', printCertificate, {
    about: 'print the certificate that signs archives, for recipients to pin',
    example: 'gpd dsar certificate > signer.pem',
  });
}

type ExportOptions = TargetOptions &
  Flags<'encryptTo' | 'language'> & { readonly tenant?: string; readonly out: string };

function recipientOf(file: string | undefined): ExportRecipient | undefined {
  if (file === undefined) return undefined;
  const bytes = readGivenFile(file);
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

async function exportArchive(context: CommandContext, options: ExportOptions): Promise<void> {
  const target = targetBody(options);
  if (options.out === '-') throw misused('--out must name a file; an archive cannot go to standard output');
  const file = resolve(options.out);
  expectNoFile(file);
  const recipient = recipientOf(options.encryptTo);
  const language =
    options.language === undefined ? undefined : checkOneOf('--language', options.language, PEOPLE_LANGUAGES);
  const kid = await context.resolveKid(options.tenant, 'option --tenant');
  const { role, ref } = await context.operator(kid);
  const { config } = context;
  const store = await context.open();
  const { database } = store;
  const { tenants, rights } = await context.services();
  const signer = signerOf(store, config);
  const exports = createExports({
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
  const { onProgress, end } = createCount('decisions');
  const archive = await runAbortable((signal) =>
    writeNewFile(file, (output) =>
      exports.write(dsar, { role, ref }, output, { recipient, signal, onProgress, language }),
    ),
  ).finally(end);
  const { decisions, sha256, size, encrypted, signer: signedBy } = archive;
  print({ file, decisions, sha256, size, encrypted, signer: signedBy }, () => [
    `${file}  ${decisions.toLocaleString('en')} ${decisions === 1 ? 'decision' : 'decisions'}, ${size.toLocaleString('en')} bytes${encrypted ? ', encrypted' : ''}`,
    `SHA-256  ${sha256}`,
  ]);
  if (!encrypted) say('It is not encrypted: deliver it over a confidential channel, or use --encrypt-to.');
}

async function printCertificate({ config, open }: CommandContext): Promise<void> {
  const store = await open();
  const signer = await signerOf(store, config)();
  const { fingerprint, notAfter } = signer;
  const value = { certificate: signer.certificate, fingerprint, notAfter: notAfter.toISOString() };
  print(value, () => [signer.certificate.trimEnd()]);
  if (!wantsJson()) say(`SHA-256 fingerprint ${fingerprint}, valid until ${value.notAfter}`);
}
