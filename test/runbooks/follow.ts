import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { tempDir } from '../support/command.ts';

/** The runbooks of docs/operate, followed word for word by a shell. */

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
/** Processes that the story starts end with it, and it sees no others. */
const NAMESPACES = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
const HOUSE = fileURLToPath(new URL('house.sh', import.meta.url));

export function missing(): string | null {
  try {
    execFileSync('unshare', [...NAMESPACES, 'sh', '-c', 'mount -t tmpfs tmpfs /mnt'], { stdio: 'ignore' });
    for (const tool of ['curl', 'useradd', 'runuser', 'pgrep', 'ps', 'fallocate', 'openssl', 'git']) {
      execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    }
    return null;
  } catch {
    return 'it takes root, a mount namespace, curl, pgrep, useradd and runuser';
  }
}

function blocksOf(page: string): string[] {
  const text = readFileSync(`${PROJECT}/docs/operate/${page}.md`, 'utf8');
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
}

interface Story {
  /** Before the first block. */
  readonly before?: string;
  /** After the block of this number, from 1: what a person does beside the page, and what has to be true. */
  readonly after?: Readonly<Record<number, string>>;
}

interface Followed {
  readonly code: number | null;
  readonly output: string;
}

/** An ephemeral port would do for nobody else; the machine needs its port before it starts. */
let port = 24_000 + (process.pid % 400) * 10;

export function follow(
  pages: readonly (readonly [page: string, story?: Story])[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Followed> {
  port += 1;
  const scripts = pages.flatMap(([page, { before = '', after = {} } = {}]) => [
    before,
    ...blocksOf(page).flatMap((block, i) => [`echo "== ${page} ${i + 1}"`, block, after[i + 1] ?? '']),
  ]);
  const env = {
    PATH: process.env['PATH'],
    SCRATCH: tempDir('house'),
    PROJECT,
    PORT: String(port),
    HOME: '/root',
    ...environment,
  };
  const script = [`. ${HOUSE}`, ...scripts, 'echo "== followed"'].join('\n');
  const child = spawn('unshare', [...NAMESPACES, 'bash', '-c', script], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })));
}

export function expectFollowed({ code, output }: Followed): void {
  expect(output).toContain('== followed');
  expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
}
