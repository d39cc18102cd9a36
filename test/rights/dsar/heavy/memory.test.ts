import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { runGpd, tempDir } from '../../../support/command.ts';
import { KID } from '../../../support/constants.ts';
import { initGpd } from '../../../support/server.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { open } from '../../support/eraser.ts';
import { createRecipient, insertDecisions, missingTool, requestId } from '../support.ts';

/** Enough that the heap is as full as it gets. */
const SMALL_COUNT = 5000;
const LARGE_COUNT = Number(process.env['DSAR_DECISIONS'] ?? 70_000);

/** Less than export.json: a program that kept the decisions would end with "heap out of memory". With 48 it only spends
 * ten times the CPU on collecting. */
const HEAP_MIB = 64;
const MORE_MIB = 48;

/** Loaded before gpd in its process: writes down the most memory that it ever held, in KiB. */
const WITNESS = `
  import { writeFileSync } from 'node:fs';
  process.on('exit', () => writeFileSync(process.env.WITNESS_FILE, String(process.resourceUsage().maxRSS)));
`;

describeWithTool('a subject with a long trail', missingTool('openssl', 'version'), () => {
  it(`gpd dsar export holds no more of ${LARGE_COUNT} decisions than of ${SMALL_COUNT}`, {
    timeout: 600_000,
  }, async () => {
    const { dataDir } = await initGpd();
    const { database } = await open(dataDir);
    await insertDecisions(database, 'few', { from: 0, count: SMALL_COUNT });
    await insertDecisions(database, 'many', { from: SMALL_COUNT, count: LARGE_COUNT });
    await database.close();
    const directory = tempDir('memory');
    const witness = join(directory, 'witness.mjs');
    writeFileSync(witness, WITNESS);
    const { certificate } = createRecipient();
    const measureExport = async (
      id: string,
      count: number,
    ): Promise<{ rss: number; ms: number; mib: number }> => {
      const report = join(directory, `${id}.rss`);
      const file = join(directory, `${id}.p7m`);
      const options = `--max-old-space-size=${HEAP_MIB} --import=${pathToFileURL(witness).href}`;
      const env = { GPD_DATA_DIR: dataDir, NODE_OPTIONS: options, WITNESS_FILE: report };
      const named = ['--tenant', KID, '--request', id, '--out', file, '--encrypt-to', certificate];
      const startedAt = Date.now();
      const ran = await runGpd(['dsar', 'export', ...named, '--json'], { env });
      expect(ran).toMatchObject({ code: 0 });
      expect(JSON.parse(ran.stdout)).toMatchObject({ decisions: count, encrypted: true });
      const mib = statSync(file).size / 2 ** 20;
      return { rss: Number(readFileSync(report, 'utf8')) / 1024, ms: Date.now() - startedAt, mib };
    };
    const small = await measureExport(requestId(0), SMALL_COUNT);
    const large = await measureExport(requestId(SMALL_COUNT), LARGE_COUNT);
    const lines = [small, large].map(
      ({ rss, ms, mib }) => `${rss.toFixed(0)} MiB for an archive of ${mib.toFixed(1)} MiB in ${ms} ms`,
    );
    console.log(`most memory: ${lines.join(', ')}`);
    expect(large.rss - small.rss).toBeLessThan(MORE_MIB);
  });
});
