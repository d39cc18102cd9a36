import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSelfSigned } from '../../src/ops/tls-service.ts';
import { runDir, tempDir } from './command.ts';

type Files = ReturnType<typeof createSelfSigned>;

/** 127.0.0.1 as inet_aton(3) reads it, and to gpd a host like any other. */
export const NOT_LOOPBACK = '0177.0.0.1';

const NAMES = {
  local: ['localhost', '127.0.0.1', 'id.shop.example'],
  named: ['id.shop.example', 'localhost', NOT_LOOPBACK],
} as const;

/**
 * Returns the files of `gpd tls init` for this machine, or for its names alone. A run creates no others,
 * because their RSA keys take seconds.
 */
export function selfSigned(host: keyof typeof NAMES): Files {
  const cacheFile = join(runDir, `self-signed-${host}.json`);
  if (!existsSync(cacheFile)) {
    const draft = join(tempDir('self-signed'), 'files.json');
    writeFileSync(draft, JSON.stringify(createSelfSigned(NAMES[host], Date.now())));
    // The rename is atomic, because other workers may create it at the same time.
    renameSync(draft, cacheFile);
  }
  return JSON.parse(readFileSync(cacheFile, 'utf8')) as Files;
}
