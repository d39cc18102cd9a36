import { readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { PROGRAM, type Spawned, spawnTool, tempDir } from '../../support/command.ts';
import { ask } from '../../support/http.ts';
import { freePort } from '../../support/ports.ts';

/** Pastes README's "Five minutes" into two shells, unchanged except for the port, and then the pages that build on it. */

function blocksOf(page: string, heading: string): readonly string[] {
  const text = readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8');
  const [, section = ''] = new RegExp(`^## ${heading}$([\\s\\S]*?)^## `, 'm').exec(text) ?? [];
  return [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
}

const blocks = blocksOf('README.md', 'Five minutes');
const [tenants = '', rotation = '', ...furtherBlocks] = blocksOf('docs/operate/keys.md', 'Do it');
const keys = [...blocksOf('docs/api-keys.md', 'Do it'), ...blocksOf('docs/webhooks.md', 'Add a target')];

it('README’s five minutes work as they are pasted', async () => {
  const port = await freePort();
  const cwd = tempDir('clone');
  symlinkSync(dirname(PROGRAM), join(cwd, 'bin'));
  // The shell gets its input line by line, as from a terminal.
  const paste = (text: string): Spawned => {
    const input = `set -o pipefail\n${text.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)}`;
    return spawnTool('bash', ['-e'], { cwd, input, env: { GPD_PORT: String(port) } });
  };
  expect(blocks.length).toBe(5);
  const [first = '', ...otherBlocks] = blocks;
  // The server replaces the shell (exec), so that both end together.
  const server = paste(first.replace('\ngpd serve\n', '\nexec node bin/gpd serve\n'));
  try {
    const isReady = () =>
      ask(`http://127.0.0.1:${port}`, '/readyz').then(
        ({ status }) => status === 200,
        () => false,
      );
    await expect.poll(isReady, { timeout: 60_000, interval: 50 }).toBe(true);
    expect([furtherBlocks, keys.length]).toEqual([[], 2]);
    const marked = [...otherBlocks, rotation, tenants, ...keys].map(
      (block, i) => `printf '\\n== %s\\n' ${i}\n${block}`,
    );
    const { output, exited } = paste(marked.join('\n'));
    expect([await exited, output.stderr]).toEqual([{ code: 0, signal: null }, expect.any(String)]);
    const [, visit, verdict, consent, person, rotated, changed, listed, hook] =
      output.stdout.split(/^== \d$/m);
    expect(visit).toContain('"reason":"ok"');
    expect(verdict).toContain('"rules":[{"id":"A1","weight":0.9,');
    expect(consent).toContain('{"allowed":true,"reason":"granted",');
    expect(consent).toContain('The log is whole');
    expect(person).toContain('export.zip');
    expect(person).toMatch(/decisions/);
    expect(rotated).toMatch(/^shop +2 +published/m);
    expect(rotated).toContain('3 bundles, 0 other than expected');
    expect(changed).toMatch(/A1/);
    expect(listed).toMatch(/publishable +page/);
    expect(hook).toMatch(/^whsec_/m);
    expect(output.stdout).not.toMatch(/"error"|unauthenticated/);
    const doctor = paste('node bin/gpd doctor');
    expect(await doctor.exited, doctor.output.stdout).toEqual({ code: 0, signal: null });
  } finally {
    server.child.kill('SIGTERM');
    await server.exited;
  }
});
