import { resolve } from 'node:path';
import type { Command } from 'commander';
import { createEmbed } from '../../consent/banner-store.ts';
import { readPolicy } from '../../log/cosign-service.ts';
import { unnamedSettings } from '../../rights/dsar/dsar.ts';
import { createEvidenceService } from '../../rights/evidence/evidence-service.ts';
import {
  BadEvidenceRequest,
  type EvidenceRequest,
  readEvidenceRequest,
} from '../../rights/evidence/period.ts';
import { type CommandContext, command, example, type Flags, ONLY_KID } from '../command-service.ts';
import { misused, print, say } from '../io-service.ts';
import { expectNoFile, writeNewFile } from '../new-files.ts';
import { createBar, QUIET_MS, runAbortable } from '../progress-service.ts';

export function define(evidence: Command): void {
  evidence
    .argument(...ONLY_KID)
    .requiredOption('--from <date>', 'the first day or time of the period (UTC): 2026-11-01 or ISO 8601')
    .requiredOption('--to <date>', 'the end of the period, which is not in it')
    .option('--principal <id>', 'only this person, by their id in the consent ledger')
    .option('--request <id>', 'only the person behind this requestId')
    .requiredOption('--out <file>', 'where to write; the file must not exist')
    .addHelpText(
      'after',
      example('gpd evidence shop --from 2026-11-01 --to 2026-12-01 --principal alice --out alice.zip'),
    )
    .action(command(writeFile));
}

type Options = Flags<'principal' | 'request'> & Readonly<Record<'from' | 'to' | 'out', string>>;

function requestOf(options: Options): EvidenceRequest {
  try {
    return readEvidenceRequest(options);
  } catch (error) {
    if (error instanceof BadEvidenceRequest) throw misused(`--${error.field}: ${error.message}`);
    throw error;
  }
}

async function writeFile(context: CommandContext, kidArgument: string | undefined, options: Options) {
  const request = requestOf(options);
  if (options.out === '-') throw misused('--out must name a file; a ZIP cannot go to standard output');
  const file = resolve(options.out);
  expectNoFile(file);
  const kid = await context.resolveKid(kidArgument);
  const { settings } = await context.tenant(kid);
  const { role, ref } = await context.operator(kid);
  const services = await context.services();
  const service = createEvidenceService({
    ...services,
    embed: createEmbed(),
    witnesses: readPolicy(context.config),
  });
  const unnamed = unnamedSettings(settings);
  if (unnamed.length > 0)
    say(
      `gpd: the file does not say who is responsible or whom to contact; set ${unnamed.map((name) => `${name}=…`).join(' ')} with \`gpd tenants set ${kid}\``,
    );
  const bar = createBar('entries', QUIET_MS);
  const onProgress = (done: number, total: number): void =>
    bar.update({ done, bytes: done, totalBytes: total });
  const archive = await runAbortable((signal) =>
    writeNewFile(file, (output) => service.make(kid, request, { role, ref }, output, { onProgress, signal })),
  ).finally(bar.end);
  const { entries, openings, sha256, size } = archive;
  print({ file, entries, openings, sha256, size }, () => [
    `${file}  ${entries.toLocaleString('en')} ${entries === 1 ? 'entry' : 'entries'}, ${size.toLocaleString('en')} bytes`,
    `SHA-256  ${sha256}`,
  ]);
  say('It has personal data and is not encrypted: deliver it over a confidential channel.');
}
