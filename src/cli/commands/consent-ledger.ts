import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { makeLogService } from '../../log/service.ts';
import { verifyLog } from '../../log/verify-service.ts';
import { io } from '../io.ts';
import { CommandFailed, EXIT, print, say } from '../output.ts';
import { checkKid, noSuchTenant, wantsJson, withStore } from '../run.ts';

const SAY_EVERY = 50_000;

async function verify(kidText: string, _options: unknown, command: Command): Promise<void> {
  const kid = checkKid(kidText);
  await withStore(command, async ({ database }) => {
    let said = 0;
    const result = await verifyLog(database, kid, (done) => {
      if (done - said < SAY_EVERY) return;
      said = done;
      say(`${done.toLocaleString('en')} entries`);
    });
    if (!result) throw noSuchTenant(kid);
    const { size, root, ok, problems } = result;
    print(wantsJson(command), ok ? { size, root, ok } : { size, root, ok, problems }, () => [
      `entries  ${size.toLocaleString('en')}`,
      `root     ${root}`,
      ok
        ? 'The log is whole: every entry, block, head and checkpoint fits.'
        : `The log does not fit: ${problems.join('; ')}`,
    ]);
    if (!ok) io().exitCode = EXIT.failure;
  });
}

async function exportLog(
  kidText: string,
  options: { readonly out?: string },
  command: Command,
): Promise<void> {
  const kid = checkKid(kidText);
  await withStore(command, async ({ database }) => {
    const log = makeLogService({ database, signerOf: () => undefined, clock: Date.now });
    if ((await log.vkey(kid)) === null) throw noSuchTenant(kid);
    const lines = Readable.from(log.exportLines(kid));
    if (options.out === undefined) {
      await pipeline(lines, io().stdout, { end: false });
      return;
    }
    const file = createWriteStream(options.out, { flags: 'wx', mode: 0o600 });
    file.on('error', () => {});
    try {
      await pipeline(lines, file);
    } catch (error) {
      const taken = (error as NodeJS.ErrnoException).code === 'EEXIST';
      throw taken
        ? new CommandFailed('conflict', `${options.out} is already there, and nothing was changed`)
        : error;
    }
    print(wantsJson(command), { kid, file: options.out }, () => [`written to ${options.out}`]);
  });
}

export function registerConsentLedger(consent: Command): void {
  consent
    .command('verify <kid>')
    .description("recompute a tenant's whole log from the database")
    .action(verify);
  consent
    .command('export <kid>')
    .description("a tenant's log as NDJSON")
    .option('--out <file>', 'write to this new file instead of standard output')
    .action(exportLog);
}
