import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PROGRAM, tempDir } from './command.ts';

const ROOT = dirname(dirname(PROGRAM));

/** Copies the built program and adds migrations, like a later release. @returns the path of its bin/gpd */
export function createLaterProgram(migrations: Readonly<Record<string, string>>): string {
  const root = join(tempDir('program'), 'gpd');
  mkdirSync(root);
  // Links would not do, because the program finds its files next to its real path.
  for (const name of ['bin', 'dist', 'migrations', 'package.json'])
    cpSync(join(ROOT, name), join(root, name), { recursive: true });
  for (const name of ['node_modules', 'views']) symlinkSync(join(ROOT, name), join(root, name));
  for (const [name, text] of Object.entries(migrations)) writeFileSync(join(root, 'migrations', name), text);
  return join(root, 'bin', 'gpd');
}
