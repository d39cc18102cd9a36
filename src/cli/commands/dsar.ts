import type { Command } from 'commander';
import type { ExportOptions } from '../dsar-export.ts';

// What signs and packs is loaded when it is asked for, not with every command.
export function registerDsar(program: Command): void {
  const dsar = program.command('dsar').description('exports for people who ask what is held about them');
  dsar
    .command('export')
    .description('write everything that is held about somebody as a signed archive; it is audited')
    .requiredOption('--tenant <kid>', 'the tenant')
    .option('--visitor <id>', 'the visitorId of their device')
    .option('--request <id>', 'a requestId of theirs')
    .option('--principal <id>', 'their id in the consent ledger')
    .requiredOption('--out <file>', 'where to write; it must not be there yet')
    .option('--encrypt-to <cert>', 'encrypt it to this certificate (RSA, PEM or DER)')
    .action(async (options: ExportOptions) => (await import('../dsar-export.ts')).exportArchive(options));
  dsar
    .command('certificate')
    .description('print the certificate that signs archives, for recipients to pin')
    .action(async () => (await import('../dsar-export.ts')).printCertificate());
}
