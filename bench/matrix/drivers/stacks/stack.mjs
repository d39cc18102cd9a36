// What each of these scripts is told in its environment (../stacks.ts), and where its stack is installed.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { STACK_FOLDER = '', STACK_URL, STACK_CHROMIUM, STACK_PROFILE, STACK_FLAGS, STACK_MODE } = process.env;

export const url = STACK_URL ?? '';
export const chromium = STACK_CHROMIUM ?? '';
export const profile = STACK_PROFILE ?? '';
/** @type {string[]} */
export const flags = JSON.parse(STACK_FLAGS ?? '[]');
export const mode = STACK_MODE;
export const headless = mode === 'headless';
/** @param {string} path below the folder of the stack */
export const installed = (path) => join(STACK_FOLDER, path);
/** @param {string} path of a module of ECMAScript alone, below that folder */
export const importInstalled = (path) => import(pathToFileURL(installed(path)).href);
export const load = createRequire(installed('package.json'));
