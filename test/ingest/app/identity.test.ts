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

  it('another device is another visitor', async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => (await identify(desktopChrome())).visitorId));
    expect(new Set(ids).size).toBe(3);
  });

  it('the same device is another visitor to another tenant', async () => {
    const signals = desktopChrome();
    const [here, there] = [await identify(signals), await identify(signals, { target: other })];
    expect(there.confidence).toBe(0.6);
    expect(there.visitorId).not.toBe(here.visitorId);
  });

  it('the same device stays one visitor after what changes every day', async () => {
    const device = 'd'.repeat(32);
    const { visitorId } = await identify(desktopChrome(device));
    const later = desktopChrome(device);
    Object.assign(later.page, { language: 'de', languages: ['de', 'en'], pluginCount: 0 });
    Object.assign(later.screen, { width: 1080, height: 1920, innerWidth: 800, innerHeight: 700, dpr: 2 });
    Object.assign(later.time, { zone: 'Asia/Tokyo', offsetMinutes: 540 });
    later.input = { moves: 0, downUpMs: null };
    expect(await identify(later)).toMatchObject({ visitorId, confidence: 0.99 });
  });

  const incomplete: readonly (readonly [string, (signals: ReturnType<typeof desktopChrome>) => object])[] = [
    ['no signals at all', () => ({})],
    ['no screen', ({ screen: _screen, ...rest }) => rest],
    ['a screen that is null', (signals) => ({ ...signals, screen: null })],
    ['no graphics', ({ graphics: _graphics, ...rest }) => rest],
    ['screen and graphics and nothing else', ({ screen, graphics }) => ({ screen, graphics })],
  ];
  it.each(incomplete)('nobody is identified below the floor: %s', async (_name, cut) => {
    for (let i = 0; i < 2; i += 1) {
      const signals = cut(desktopChrome('f'.repeat(32))) as Record<string, unknown>;
      const body = await identify(signals, { headers: { origin: ORIGIN } });
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
    const body = await identify({ ...desktopChrome(), ...wrongSignals });
    expect(body.class).toBe('unknown');
  });

  it.each([
    ['all three empty', { screen: {}, media: {}, graphics: {} }],
    ['graphics empty', { graphics: {} }],
    ['a screen of nulls', { screen: { width: null, height: null } }],
  ])('an empty group is as good as none, so nobody is taken for a person: %s', async (_name, empty) => {
    const body = await identify({ ...desktopChrome(), ...empty });
    expect(body).toMatchObject({ class: 'unknown', visitorId: null, confidence: 0 });
  });

  it('keeps no durableId where a visitor could see it', async () => {
    const signals = desktopChrome();
    const body = await identify(signals, { headers: { origin: ORIGIN } });
    const rows = await execute(
      gpd.dataDir,
      `SELECT durable FROM decisions WHERE request_id = '${body.requestId}'`,
    );
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
    ['an unknown origin', 'https://evil.example'],
    ['the origin of another tenant', OTHER_ORIGIN],
    ['the same host over http', 'http://shop.example'],
    ['the same host on another port', 'https://shop.example:8443'],
    ['a subdomain', 'https://a.shop.example'],
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
