import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSelfSigned } from '../../src/ops/tls.ts';
import { runDir, tempDir } from './command.ts';

type Files = ReturnType<typeof createSelfSigned>;

/** What `gpd tls init` makes for these names, made once a run: two RSA keys take a second or more. */
export function selfSigned(names: readonly string[]): Files {
  const made = join(runDir, `self-signed-${names.join('-')}.json`);
  if (!existsSync(made)) {
    const draft = join(tempDir('self-signed'), 'files.json');
    writeFileSync(draft, JSON.stringify(createSelfSigned(names, Date.now())));
    // Whole or not at all: other workers make it, too.
    renameSync(draft, made);
  }
  return JSON.parse(readFileSync(made, 'utf8')) as Files;
}
