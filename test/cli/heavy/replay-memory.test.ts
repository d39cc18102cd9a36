import { createWriteStream, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { gpdJson, runGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { desktopChrome } from '../../support/samples.ts';
import { makePlaintext, sealUnder } from '../../support/seal.ts';
import { initGpd } from '../../support/server.ts';

const SMALL_COUNT = 2000;
const LARGE_COUNT = 20_000;

/** Less than the input: a program that kept all lines would run out of heap. */
const HEAP_MIB = 64;

async function writeBundles(path: string, key: Uint8Array, count: number): Promise<void> {
  const signals = desktopChrome();
  const out = createWriteStream(path);
  for (let i = 0; i < count; i += 1) {
    const line = `${JSON.stringify(sealUnder(KID, key, makePlaintext({ signals })))}\n`;
    if (!out.write(line)) await new Promise<void>((resolve) => out.once('drain', () => resolve()));
  }
  out.end();
  await finished(out);
}

/** Loaded before gpd in its process: at exit it writes the process's peak memory in KiB. */
const WITNESS = `
  import { writeFileSync } from 'node:fs';
  process.on('exit', () => writeFileSync(process.env.WITNESS_FILE, String(process.resourceUsage().maxRSS)));
`;

it(`gpd replay holds no more of ${LARGE_COUNT} bundles than of ${SMALL_COUNT}`, async () => {
  const { dataDir } = await initGpd();
  const base = { GPD_DATA_DIR: dataDir };
  const { key } = await gpdJson<{ key: string }>(['keys', 'symmetric', KID], { env: base });
  const directory = tempDir('memory');
  const witness = join(directory, 'witness.mjs');
  writeFileSync(witness, WITNESS);
  const measurePeak = async (count: number): Promise<{ rss: number; size: number }> => {
    const file = join(directory, `${count}.ndjson`);
    const report = join(directory, `${count}.rss`);
    await writeBundles(file, Buffer.from(key, 'base64'), count);
    const options = `--max-old-space-size=${HEAP_MIB} --import=${pathToFileURL(witness).href}`;
    const env = { ...base, NODE_OPTIONS: options, WITNESS_FILE: report };
    const ran = await runGpd(['replay', file, '--json'], { env });
    expect(JSON.parse(ran.stdout)).toMatchObject({ total: count, byReason: { ok: count } });
    return { rss: Number(readFileSync(report, 'utf8')) / 1024, size: statSync(file).size / 1024 ** 2 };
  };
  const [small, large] = [await measurePeak(SMALL_COUNT), await measurePeak(LARGE_COUNT)];
  const texts = [small, large].map(
    ({ rss, size }) => `${rss.toFixed(0)} MiB for ${size.toFixed(0)} MiB of input`,
  );
  console.log(`most memory: ${texts.join(', ')}`);
  expect(large.size).toBeGreaterThan(HEAP_MIB);
  expect(large.rss - small.rss).toBeLessThan(large.size / 2);
});
