import { run } from './gpd.ts';
import { EXIT, io, say } from './io-service.ts';

/** The entry point of the program `gpd`. */

// The pg library prints deprecation notices (PGPASSFILE) that an operator cannot act on.
process.noDeprecation = true;
// Files that gpd writes hold keys and people's records: no other user of this machine may read them.
process.umask(0o077);

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe has closed it (`gpd … | head`), which is no failure.
  if (error.code === 'EPIPE') process.exit(0);
  say(
    `gpd: stdout cannot be written (${error.code ?? error.name}): the command took effect, but its output is lost`,
  );
  process.exit(EXIT.failure);
});

process.exitCode = await run(process.argv.slice(2), io());
