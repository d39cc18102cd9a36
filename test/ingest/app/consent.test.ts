import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KID, ORIGIN } from '../../support/constants.ts';
import { dumpDatabase } from '../../support/database.ts';
import { expectCore, post, SEEN_WITHIN } from '../../support/expect.ts';
import { desktopChrome } from '../../support/samples.ts';
import { createBundle, type PlaintextParts } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';

const NEEDED = 'device-identification';

function gpcSignals(): Record<string, unknown> {
  const signals = desktopChrome();
  signals.page['gpc'] = true;
  return signals;
}

describe('the consent gate', () => {
  let gpd: Gpd;
  let acme: SealTarget;
  beforeAll(async () => {
    gpd = await startGpd();
    acme = gpd.targets[0]!;
  });
  afterAll(() => gpd.stop());

  const refused: readonly (readonly [string, () => PlaintextParts, Record<string, string>])[] = [
    ['no purpose', () => ({ consent: { purposes: [] } }), {}],
    ['another purpose', () => ({ consent: { purposes: ['analytics'] } }), {}],
    ['a purpose almost so', () => ({ consent: { purposes: ['Device-Identification', `${NEEDED} `] } }), {}],
    ['GPC in the header', () => ({}), { 'sec-gpc': '1' }],
    ['GPC in the receipt', () => ({ consent: { gpc: true } }), {}],
    ['GPC in the signals', () => ({ signals: gpcSignals() }), {}],
  ];

  it.each(refused)('451 and not a row written: %s', async (_name, parts, headers) => {
    const before = await dumpDatabase(gpd.dataDir);
    for (let i = 0; i < 3; i += 1) {
      expectCore(await post(gpd.url, createBundle(acme, parts()), headers), 'consent-missing');
    }
    expect(await dumpDatabase(gpd.dataDir)).toEqual(before);
  });

  it('sees the rows of a bundle with consent, so that the comparison above can fail', async () => {
    const before = await dumpDatabase(gpd.dataDir);
    expectCore(await post(gpd.url, createBundle(acme)), 'ok');
    const after = await dumpDatabase(gpd.dataDir);
    const changed = Object.keys(after).filter((name) => String(after[name]) !== String(before[name]));
    expect(changed).toEqual(expect.arrayContaining(['decisions', 'nonces', 'sightings', 'visitor_index']));
  });

  it.each([
    ['none', false, false, {}],
    ['header', false, false, { 'sec-gpc': '1' }],
    ['bundle', true, false, {}],
    ['bundle', false, true, {}],
    ['both', true, false, { 'sec-gpc': '1' }],
    ['both', false, true, { 'sec-gpc': '1' }],
  ])('says where GPC came from: %s', async (gpcSource, inReceipt, inSignals, headers) => {
    const issuedAt = Date.now() - 60_000;
    const consent = { purposes: ['device-identification', 'other'], gpc: inReceipt, version: 7, issuedAt };
    const signals = inSignals ? gpcSignals() : desktopChrome();
    const gpc = gpcSource !== 'none';
    const reply = await post(
      gpd.url,
      createBundle(acme, { consent, signals }),
      headers as Record<string, string>,
    );
    const { consentState } = expectCore(reply, gpc ? 'consent-missing' : 'ok');
    const purposes = gpc ? [] : ['device-identification', 'other'];
    expect(consentState).toEqual({ purposes, gpc, gpcSource, version: 7, issuedAt, basis: 'asserted' });
  });

  it.each(['0', 'true', '11', '0, 1', '?1', ''])('Sec-GPC: %j', async (value) => {
    const isSignal = value === '0, 1';
    const reply = await post(gpd.url, createBundle(acme), { 'sec-gpc': value });
    const { consentState } = expectCore(reply, isSignal ? 'consent-missing' : 'ok');
    expect(consentState.gpcSource).toBe(isSignal ? 'header' : 'none');
  });

  it('says of a replay under what consent it stood', async () => {
    const bundle = createBundle(acme, { consent: { version: 12 } });
    expectCore(await post(gpd.url, bundle), 'ok');
    const { consentState } = expectCore(await post(gpd.url, bundle), 'replay');
    expect(consentState).toMatchObject({ purposes: ['device-identification'], version: 12 });
  });
});

describe.concurrent('a purpose that GPC does not touch', () => {
  it('stays in the granted set, and device-identification with it when the tenant says so', async () => {
    const gpd = await startGpd();
    const acme = gpd.targets[0]!;
    const gpcPolicy = async (id: string, gpc: string): Promise<void> => {
      await gpd.json(['consent', 'purposes', 'set', KID, id, '--title', id, '--gpc', gpc]);
    };
    const consent = { purposes: ['device-identification', 'security', 'ads'], gpc: true };
    const purposesNow = async (): Promise<readonly string[]> => {
      const reply = await post(gpd.url, createBundle(acme, { consent }));
      return (reply.json() as { consentState: { purposes: string[] } }).consentState.purposes;
    };
    await gpcPolicy('security', 'ignore');
    await vi.waitFor(async () => expect(await purposesNow()).toEqual(['security']), SEEN_WITHIN);
    expectCore(await post(gpd.url, createBundle(acme, { consent })), 'consent-missing');

    await gpcPolicy('device-identification', 'ignore');
    const both = ['device-identification', 'security'];
    await vi.waitFor(async () => expect(await purposesNow()).toEqual(both), SEEN_WITHIN);
    const { consentState } = expectCore(await post(gpd.url, createBundle(acme, { consent })), 'ok');
    expect(consentState).toMatchObject({ gpc: true, gpcSource: 'bundle' });
    await gpd.stop();
  });
});

describe.concurrent('consent.basis = ledger', () => {
  it('gives no verdict on an assertion, and writes nothing', async () => {
    const gpd = await startGpd();
    await gpd.json(['tenants', 'set', KID, 'consent.basis=ledger']);
    const send = () => post(gpd.url, createBundle(gpd.targets[0]!));
    await vi.waitFor(async () => expect((await send()).status).toBe(451), SEEN_WITHIN);
    const before = await dumpDatabase(gpd.dataDir);
    expectCore(await send(), 'consent-missing');
    expect(await dumpDatabase(gpd.dataDir)).toEqual(before);
    await gpd.stop();
  });
});

/** A missing worker file changes no verdict, so only doctor can report it. */

it.concurrent('bundles without a worker are counted by hour, and doctor tells where most are', async () => {
  const gpd = await startGpd({ tenants: [{ kid: KID, origins: [ORIGIN] }] });
  const send = async (signals: Record<string, unknown>, reason: 'ok' | 'consent-missing' = 'ok') => {
    const consent = { purposes: [], gpc: false, version: 3, issuedAt: Date.now() };
    const bundle = createBundle(gpd.targets[0]!, { signals, ...(reason === 'ok' ? {} : { consent }) });
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
