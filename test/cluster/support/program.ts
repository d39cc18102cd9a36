import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../../support/command.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/**
 * The built program with another set of migrations: what an older or a newer release would bring.
 * @returns its bin/gpd
 */
export function makeProgram(migrations: {
  /** So many of the newest are missing. */
  readonly without?: number;
  readonly further?: Readonly<Record<string, string>>;
}): string {
  const root = join(tempDir('program'), 'gpd');
  mkdirSync(root);
  // Copies: the program finds its files beside its real path.
  for (const name of ['bin', 'dist', 'migrations', 'package.json'])
    cpSync(join(ROOT, name), join(root, name), { recursive: true });
  for (const name of ['node_modules', 'views']) symlinkSync(join(ROOT, name), join(root, name));
  const names = readdirSync(join(root, 'migrations')).sort();
  for (const name of names.slice(names.length - (migrations.without ?? 0)))
    rmSync(join(root, 'migrations', name));
  for (const [name, text] of Object.entries(migrations.further ?? {}))
    writeFileSync(join(root, 'migrations', name), text);
  return join(root, 'bin', 'gpd');
}
