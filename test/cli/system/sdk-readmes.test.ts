import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gpdJson, PROGRAM, spawnTool, tempDir } from '../../support/command.ts';

/** Runs the gpd commands in the READMEs of the SDKs word by word; the SDKs' own tests run the rest. */

const setUps = ['node', 'python', 'go', 'java'].map((name) => {
  const text = readFileSync(new URL(`../../../sdk/${name}/README.md`, import.meta.url), 'utf8');
  return /^```sh\n(gpd [\s\S]*?)^```$/m.exec(text)?.[1];
});

describe('the set-up in the READMEs of the SDKs', () => {
  it('is the same in each', () =>
    expect(new Set(setUps)).toEqual(new Set([expect.stringContaining('gpd ')])));

  it('leaves a purpose and a key, and a shell in which gpd still runs', async () => {
    const bin = tempDir('bin');
    const shim = join(bin, 'gpd');
    writeFileSync(shim, `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`);
    chmodSync(shim, 0o755);
    const env = {
      GPD_DATA_DIR: join(tempDir('readme'), 'gpd-data'),
      PATH: `${bin}${delimiter}${process.env['PATH']}`,
    };
    await gpdJson(['init', '--tenant', 'shop', '--origin', 'https://shop.example'], { env });
    const script = `${setUps[0]}printf '%s %s\\n' "$GPD_CONSENT_URL" "$GPD_CONSENT_KEY"; gpd consent purposes list shop --json`;
    const { output, exited } = spawnTool('sh', ['-ec', script], { env });
    expect([await exited, output.stderr]).toEqual([{ code: 0, signal: null }, '']);
    expect(output.stdout).toMatch(/^http:\/\/127\.0\.0\.1:8080 gpd_sk_[\w-]{43}$/m);
    expect(output.stdout).toContain('"newsletter"');
  });
});
