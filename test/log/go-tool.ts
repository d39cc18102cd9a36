import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/command.ts';

/** Programs of other makers, built by Go and kept between runs: to build one takes a minute. */

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));

/** The path of a program, in a folder that names its version. */
export const goTool = (folder: string, name: string): string => join(CACHE, folder, name);

/** Installs `module` as `program`, once. @returns why it cannot, or null */
export function missingGoTool(program: string, module: string, cwd = tempDir('go')): string | null {
  if (spawnSync('go', ['version']).error !== undefined) return 'go is not installed';
  if (existsSync(program)) return null;
  // Go makes modules read-only by default, and then the scratch folder cannot be removed.
  const env = { ...process.env, GOPATH: tempDir('go'), GOBIN: join(program, '..'), GOFLAGS: '-modcacherw' };
  const built = spawnSync('go', ['install', module], { env, cwd, encoding: 'utf8' });
  return built.status === 0 ? null : `${module} cannot be built: ${built.stderr.trim().split('\n').at(-1)}`;
}
