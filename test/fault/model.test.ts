import { afterAll, beforeAll, expect, it } from 'vitest';
import { readExport } from '../consent/app/support/naive-log.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { fc } from '../support/property.ts';
import { anyCommand, ran } from './model/commands.ts';
import { newModel, type Real, startReal } from './model/world.ts';
import { sized, tell } from './support/size.ts';

const RUNS = sized(25, 400);
const COMMANDS = 100;

let idp: Idp;
beforeAll(async () => {
  idp = await startIdp();
});
afterAll(() => idp.stop());

it('answers as the oracle does, whatever is done in whatever order', { timeout: RUNS * 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(anyCommand, { maxCommands: COMMANDS, size: 'max' }), async (commands) => {
      const model = newModel();
      let real: Real | undefined;
      try {
        await fc.asyncModelRun(async () => {
          real = await startReal(idp);
          return { model, real };
        }, commands);
        const log = readExport(await (real as Real).get('/v1/ledger/export'));
        expect(log).toHaveLength(model.log);
      } finally {
        await real?.stop();
      }
    }),
    { numRuns: RUNS },
  );
  const total = [...ran.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBeGreaterThan(RUNS);
  const words = [...ran].map(([name, count]) => `${name} ${count}`).join(', ');
  tell('model', `${RUNS} runs, ${total} commands, no answer other than the oracle's: ${words}`);
});
