import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSelfSigned } from '../../src/ops/tls-service.ts';
import { runDir, tempDir } from './command.ts';

type Files = ReturnType<typeof createSelfSigned>;

/**
 * Returns the files of `gpd tls init` for these names. They are
 * created once per run, because two RSA keys take a second or more.
 */
export function selfSigned(names: readonly string[]): Files {
  const cacheFile = join(runDir, `self-signed-${names.join('-')}.json`);
  if (!existsSync(cacheFile)) {
    const draft = join(tempDir('self-signed'), 'files.json');
    writeFileSync(draft, JSON.stringify(createSelfSigned(names, Date.now())));
    // The rename is atomic, because other workers may create it at the same time.
    renameSync(draft, cacheFile);
  }
  return JSON.parse(readFileSync(cacheFile, 'utf8')) as Files;
}
