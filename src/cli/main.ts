import { run } from './gpd.ts';
import { EXIT, io, say } from './io.ts';

// pg's notices for programmers (PGPASSFILE): an operator cannot act on them.
process.noDeprecation = true;
// What gpd writes holds keys and people's records: nobody else on this machine reads it.
process.umask(0o077);

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe went away (`gpd … | head`): that is no failure.
  if (error.code === 'EPIPE') process.exit(0);
  say(
    `gpd: stdout cannot be written (${error.code ?? error.name}): the command took effect, but its output is lost`,
  );
  process.exit(EXIT.failure);
});

process.exitCode = await run(process.argv.slice(2), io());
