import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IngestResponse } from '../../../src/schema/responses.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectCore, post } from '../../support/expect.ts';
import { browserHeaders, desktopChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';

const OTHER_ORIGIN = 'https://other.example:8443';

let gpd: Gpd;
let acme: SealTarget;
let other: SealTarget;
beforeAll(async () => {
  const tenants = [
    { kid: KID, origins: [ORIGIN, 'https://second.example'] },
    { kid: 'other', origins: [OTHER_ORIGIN] },
  ];
  gpd = await startGpd({ tenants, settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
  [acme, other] = [gpd.targets[0]!, gpd.targets[1]!];
});
afterAll(() => gpd.stop());

async function identify(
  signals: Record<string, unknown>,
  { target = acme, headers = {} }: { target?: SealTarget; headers?: Record<string, string> } = {},
): Promise<IngestResponse> {
  return expectCore(await post(gpd.url, createBundle(target, { signals }), headers), 'ok');
}

function groupsOf(...names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(desktopChrome()).filter(([name]) => names.includes(name)));
}

describe('who it is', () => {
  it('0.6 at first sight, 0.99 ever after, the same visitorId', async () => {
    const signals = desktopChrome();
    const first = await identify(signals);
    expect(first.confidence).toBe(0.6);
    for (let i = 0; i < 3; i += 1) {
      const again = await identify(signals);
      expect(again).toMatchObject({ confidence: 0.99, visitorId: first.visitorId });
      expect(again.requestId).not.toBe(first.requestId);
    }
  });

  it('an automation verdict is never carried over to a later verdict of the same visitorId', async () => {
    const device = 'a'.repeat(32);
    const driven = desktopChrome(device);
    driven.page['webdriver'] = true;
    const person = { class: 'human', smartSignals: { bot: false } };
    const headers = browserHeaders(ORIGIN);
    const before = await identify(driven, { headers });
    const after = await identify(desktopChrome(device), { headers });
    expect(before).toMatchObject({ class: 'undeclared_automation', smartSignals: { bot: true } });
    expect(after).toMatchObject({ ...person, visitorId: before.visitorId, suspectScore: 0 });
    expect(await identify(driven, { headers })).toMatchObject({ class: 'undeclared_automation' });
    expect(await identify(desktopChrome(device), { headers })).toMatchObject(person);
  });

  it('a twin from another network of the day is told at once that the id may be shared', async () => {
    const signals = desktopChrome();
    const from = async (network: string) => {
      const { confidence, needsAttestation } = await identify(signals, {
        headers: { 'x-forwarded-for': network },
      });
      return [confidence, needsAttestation];
    };
    expect(await from('198.51.100.1')).toEqual([0.6, false]);
    expect(await from('198.51.100.2')).toEqual([0.99, false]);
    expect(await from('203.0.113.1')).toEqual([0.99, true]);
    expect(await from('203.0.113.1')).toEqual([0.99, false]);
  });

  it('the same device is another visitor to another tenant', async () => {
    const signals = desktopChrome();
    const [here, there] = [await identify(signals), await identify(signals, { target: other })];
    expect(there.confidence).toBe(0.6);
    expect(there.visitorId).not.toBe(here.visitorId);
  });

  it.each<readonly [string, object]>([
    ['no signals at all', {}],
    ['a screen that is null', { ...desktopChrome(), screen: null }],
    ['no graphics', { ...desktopChrome(), graphics: undefined }],
    ['screen and graphics and nothing else', { ...groupsOf('screen', 'graphics') }],
    ['a screen of nulls', { ...desktopChrome(), screen: { width: null, height: null } }],
    ['all three empty', { ...desktopChrome(), screen: {}, media: {}, graphics: {} }],
  ])('nobody is identified below the floor, nor taken for a person: %s', async (_name, signals) => {
    for (let i = 0; i < 2; i += 1) {
      const body = await identify({ ...signals }, { headers: { origin: ORIGIN } });
      expect(body).toMatchObject({
        visitorId: null,
        confidence: 0,
        class: 'unknown',
        needsAttestation: false,
      });
      expect(body).not.toHaveProperty('transparencyToken');
    }
  });

  it.each([
    ['a page that is a string', { page: 'x' }],
    ['a screen of strings', { screen: { width: '1920', height: '1080' } }],
    ['a media query that is no word of ours', { media: { pointer: 'laser' } }],
    ['an endless text', { engine: { errorMessage: 'x'.repeat(5000) } }],
    ['graphics that are an array', { graphics: [] }],
  ])('badly typed signals lead to unknown, never to a 500: %s', async (_name, wrongSignals) => {
    expect((await identify({ ...desktopChrome(), ...wrongSignals })).class).toBe('unknown');
  });

  it.each(['math', 'errorMessage'])('a lone surrogate in engine.%s is no 500 either', async (field) => {
    await identify({ ...desktopChrome(), engine: { [field]: 'a\ud800b' } });
  });

  it('keeps no durableId where a visitor could see it', async () => {
    const signals = desktopChrome();
    const body = await identify(signals, { headers: { origin: ORIGIN } });
    const select = `SELECT durable FROM decisions WHERE request_id = '${body.requestId}'`;
    const rows = await execute(gpd.dataDir, select);
    const durable = String(rows[0]?.['durable']);
    expect(durable.length).toBeGreaterThan(20);
    expect(JSON.stringify(body)).not.toContain(durable);
  });
});

describe('the transparency token', () => {
  const signals = desktopChrome();

  it.each([ORIGIN, 'https://second.example'])('is issued to a page of %s', async (origin) => {
    const body = await identify(signals, { headers: { origin } });
    expect(body.transparencyToken).toMatch(/^[A-Za-z0-9_-]+$/);
  });

  it.each([
    ['no origin', undefined],
    ['an origin that begins like it', `${ORIGIN}.evil.example`],
    ['the origin of another tenant', OTHER_ORIGIN],
    ['the same host over http', 'http://shop.example'],
    ['null', 'null'],
    ['the origin in capitals', 'HTTPS://SHOP.EXAMPLE'],
    ['the origin twice', `${ORIGIN}, ${ORIGIN}`],
  ])('is not issued to %s', async (_name, origin) => {
    const body = await identify(signals, { headers: origin === undefined ? {} : { origin } });
    expect(body.visitorId).not.toBeNull();
    expect(body).not.toHaveProperty('transparencyToken');
  });

  it('is another one each time and says nothing by itself', async () => {
    const headers = { origin: ORIGIN };
    const [one, two] = [await identify(signals, { headers }), await identify(signals, { headers })];
    expect(one.transparencyToken).not.toBe(two.transparencyToken);
    const bytes = Buffer.from(one.transparencyToken ?? '', 'base64url').toString('latin1');
    for (const word of [KID, one.requestId, String(one.visitorId)]) expect(bytes).not.toContain(word);
  });
});
