import { expect, it } from 'vitest';
import { KID, ORIGIN } from '../../support/constants.ts';
import { dumpDatabase } from '../../support/database.ts';
import { expectCore, post } from '../../support/expect.ts';
import { desktopChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { startGpd } from '../../support/server.ts';

/** A missing worker file changes no verdict, so only doctor can report it. */

it('bundles without a worker are counted by hour, and doctor tells where most are', async () => {
  const gpd = await startGpd({ tenants: [{ kid: KID, origins: [ORIGIN] }] });
  const send = async (signals: Record<string, unknown>, reason: 'ok' | 'consent-missing' = 'ok') => {
    const consent = { purposes: [], gpc: false, version: 3, issuedAt: Date.now() };
    const bundle = createBundle(gpd.targets[0]!, {
      signals,
      ...(reason === 'ok' ? {} : { consent }),
    } as never);
    expectCore(await post(gpd.url, bundle, { origin: ORIGIN }), reason);
  };
  const line = async () => {
    const { checks } = JSON.parse((await gpd.cli(['doctor', '--json'])).stdout) as {
      checks: { id: string; status: string; message: string; remedy?: string }[];
    };
    return checks.find(({ id }) => id === 'agent.worker');
  };
  expect(await line()).toMatchObject({ status: 'pass' });
  const signals = desktopChrome('7'.repeat(32));
  const { worker, ...without } = signals;
  expect(worker).toBeTruthy();
  await send(signals);
  await send(without);
  await send({ ...signals, worker: null });
  // Nobody's signals are counted without their consent.
  await send(without, 'consent-missing');
  await gpd.stop();
  const rows = (await dumpDatabase(gpd.dataDir))['tallies']?.map((row) => JSON.parse(row) as object);
  expect(rows).toMatchObject([
    { kid: KID, kind: 'visit', name: 'judged', n: 3 },
    { kid: KID, kind: 'visit', name: 'workerless', n: 2 },
  ]);
  expect(await line()).toMatchObject({ status: 'warn' });
});
