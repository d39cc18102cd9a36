// Builds the package: one module and its types, checked against the types of @gpd/browser, which are built first.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildBrowser } from '../browser/build.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '..', '..');

await buildBrowser({ outDir: resolve(here, '..', 'browser', 'dist') });
rmSync(join(here, 'dist'), { recursive: true, force: true });
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
execFileSync(process.execPath, [compiler, '-p', join(here, 'tsconfig.json')], { stdio: 'inherit' });
