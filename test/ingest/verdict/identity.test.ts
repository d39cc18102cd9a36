import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Facts } from '../../../src/ingest/verdict/facts.ts';
import {
  confidenceOf,
  currentEpoch,
  type Identity,
  identify,
  visitorIdOf,
} from '../../../src/ingest/verdict/identity.ts';
import { sha256 } from '../../../src/lib/crypto.ts';
import { createIngestTenant, NOW } from '../../support/make.ts';
import { createFacts, createRawSignals, type createSignals } from '../../support/make-signals.ts';

type Changes = Parameters<typeof createSignals>[0];

const tenant = createIngestTenant();
type Defenses = Facts['defenses'];
const PLAIN: Defenses = [];

function identityOf(changes: Changes = {}, defenses = PLAIN, epoch = 680, who = tenant): Identity | null {
  return identify(who, createFacts(changes, {}, { defenses }), epoch);
}

const durable = (changes?: Changes, defenses?: Defenses): string | undefined =>
  identityOf(changes, defenses)?.durable;

const chrome = (version: string): string =>
  `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version} Safari/537.36`;
const firefox = (version: string): string =>
  `Mozilla/5.0 (X11; Linux x86_64; rv:${version}) Gecko/20100101 Firefox/${version}`;
const safari = (version: string): string =>
  `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/${version} Safari/605.1.15`;
const uaData = createRawSignals()['page']?.['uaData'] as object;

describe('the id', () => {
  it.each<[string, Changes]>([
    ['a restart', {}],
    ['a resize', { screen: { innerWidth: 900, innerHeight: 600, outerWidth: 910, outerHeight: 700 } }],
    ['a task bar that hides', { screen: { availWidth: 2560, availHeight: 1400 } }],
    ['a zoom', { screen: { dpr: 1.5, innerWidth: 1200, innerHeight: 800 } }],
    ['a turned screen', { screen: { width: 1440, height: 2560 } }],
    ['a minor update', { page: { userAgent: chrome('142.0.7444.59'), appVersion: '5.0 (X11)' } }],
    [
      'a major update',
      {
        page: {
          userAgent: chrome('150.0.0.0'),
          uaData: { ...uaData, platformVersion: '6.12', fullVersionList: [] },
        },
      },
    ],
    ['another language', { page: { language: 'fr-FR', languages: ['fr-FR', 'en'] } }],
    ['a journey', { time: { zone: 'Asia/Tokyo', offsetMinutes: -540, clockStepMs: 1 } }],
    ['a plug-in', { page: { pluginCount: 5, pdfViewer: true } }],
    ['cookies switched off, a GPC signal', { page: { cookies: false, gpc: true } }],
    ['high contrast', { media: { forcedColors: true } }],
    ['a mouse unplugged', { media: { pointer: 'none', hover: false } }],
    [
      'an extension',
      { tells: { globals: ['__ext'], patched: ['canvas'], cdp: true, notificationMismatch: true } },
    ],
    ['a worker that did not start, a frame that did not load', { worker: null, frame: null }],
    ['input', { input: { moves: 12, downUpMs: 80 } }],
    ['automation', { page: { webdriver: true } }],
    ['more memory than is told', { page: { deviceMemory: 32 } }],
    [
      'a driver update',
      {
        graphics: {
          renderer:
            'ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6 (Core Profile) Mesa 25.0.7)',
        },
      },
    ],
  ])('survives %s', (_what, changes) => {
    expect(durable(changes)).toBe(durable());
  });

  it.each<[string, Changes]>([
    [
      'engine',
      {
        page: { userAgent: safari('16.0').replace('Macintosh; Intel Mac OS X 10_15_7', 'X11; Linux x86_64') },
      },
    ],
    [
      'operating system',
      {
        page: { userAgent: chrome('142.0.0.0').replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64') },
      },
    ],
    ['architecture', { page: { uaData: { ...uaData, architecture: 'arm' } } }],
    ['bitness', { page: { uaData: { ...uaData, bitness: '32' } } }],
    ['model', { page: { uaData: { ...uaData, model: 'Pixel 9' } } }],
    ['GPU', { graphics: { renderer: 'ANGLE (AMD, AMD Radeon RX 6600 (radeonsi navi23), OpenGL 4.6)' } }],
    ['screen width', { screen: { width: 1920 } }],
    ['screen height', { screen: { height: 1080 } }],
    ['colour depth', { screen: { colorDepth: 30 } }],
    ['gamut', { media: { colorGamut: 'p3' } }],
    ['HDR', { media: { hdr: true } }],
    ['cores', { page: { hardwareConcurrency: 16 } }],
    ['memory', { page: { deviceMemory: 4 } }],
    ['touch points', { page: { maxTouchPoints: 10 } }],
    ['fonts', { fonts: '0f3d' }],
    ['audio', { graphics: { audioSum: 35.74 } }],
    ['engine constants: eval', { engine: { evalLength: 37 } }],
    ['engine constants: error text', { engine: { errorMessage: 'something else' } }],
    ['engine constants: mathematics', { engine: { math: '1.4456734533' } }],
    ['canvas', { graphics: { canvasHash: 'decaf' } }],
  ])('changes with another %s', (_what, changes) => {
    const changed = durable(changes);
    expect(changed).toBeDefined();
    expect(changed).not.toBe(durable());
  });
});

describe('what a browser makes useless is left out', () => {
  const canvas = { graphics: { canvasHash: 'decaf' } };
  const audio = { graphics: { audioSum: 1 } };
  const size = { screen: { width: 1000, height: 1000 } };
  const touch = { page: { maxTouchPoints: 5 } };
  const brave: Defenses = ['brave'];
  const rfp: Defenses = ['firefox-rfp'];

  it.each<[string, string, Changes, Defenses, boolean]>([
    [
      'canvas that changes from read to read',
      chrome('142.0'),
      { graphics: { canvasHash: 'decaf', canvasStable: false } },
      PLAIN,
      true,
    ],
    ['canvas of Brave', chrome('142.0'), canvas, brave, true],
    ['audio of Brave', chrome('142.0'), audio, brave, true],
    ['canvas of Firefox 119', firefox('119.0'), canvas, PLAIN, false],
    ['canvas of Firefox 120', firefox('120.0'), canvas, PLAIN, true],
    ['audio of Firefox', firefox('140.0'), audio, PLAIN, true],
    ['canvas of Safari 16', safari('16.6'), canvas, PLAIN, false],
    ['canvas of Safari 17', safari('17.0'), canvas, PLAIN, true],
    ['audio of Safari', safari('16.6'), audio, PLAIN, true],
    ['screen of Safari 17', safari('17.0'), size, PLAIN, true],
    ['screen of Safari 16', safari('16.6'), size, PLAIN, false],
    ['canvas under RFP', firefox('140.0'), canvas, rfp, true],
    ['screen under RFP', firefox('140.0'), size, rfp, true],
    ['touch points under RFP', firefox('140.0'), touch, rfp, true],
    ['touch points of Firefox', firefox('140.0'), touch, PLAIN, false],
  ])('%s', (_what, userAgent, changes, defenses, isSame) => {
    const base: Changes = {
      page: { userAgent },
      graphics: { canvasStable: (changes?.['graphics'] as { canvasStable?: boolean })?.canvasStable ?? true },
    };
    const changed: Changes = Object.fromEntries(
      [...new Set([...Object.keys(base), ...Object.keys(changes ?? {})])].map((group) => [
        group,
        { ...(base?.[group] as object), ...(changes?.[group] as object) },
      ]),
    );
    expect(durable(changed, defenses) === durable(base, defenses)).toBe(isSame);
  });

  it('tells Firefox apart by two tiers of cores only', () => {
    const cores = (n: number) => durable({ page: { userAgent: firefox('140.0'), hardwareConcurrency: n } });
    expect(cores(2)).toBe(cores(4));
    expect(cores(6)).toBe(cores(32));
    expect(cores(4)).not.toBe(cores(8));
  });
});

describe('the identity floor', () => {
  const bare = {
    page: null,
    worker: null,
    frame: null,
    media: null,
    engine: null,
    time: null,
    tells: null,
    input: null,
    fonts: null,
  };

  it.each<[string, Changes, boolean]>([
    ['everything', {}, true],
    ['no screen', { screen: null }, false],
    ['a screen without a height', { screen: { height: null } }, false],
    ['no graphics', { graphics: null }, false],
    ['screen and graphics alone', bare, false],
    ['one more input', { ...bare, fonts: '0f' }, false],
    ['two more inputs', { ...bare, fonts: '0f', engine: { evalLength: 33 } }, true],
    ['no signals at all', { ...bare, screen: null, graphics: null }, false],
  ])('%s: identified %s', (_what, changes, identified) => {
    expect(identityOf(changes) !== null).toBe(identified);
  });
});

describe('durableId and visitorId', () => {
  it('are a tenant’s own', () => {
    const other = createIngestTenant([], {
      kid: 'other',
      identityKey: sha256('i2'),
      durableKey: sha256('d2'),
    });
    expect(identityOf({}, PLAIN, 680, other)?.durable).not.toBe(durable());
    const sameKeys = createIngestTenant([], { kid: 'other' });
    expect(identityOf({}, PLAIN, 680, sameKeys)?.visitorId).not.toBe(identityOf()?.visitorId);
  });

  it('hang on each key of the tenant', () => {
    for (const change of [{ identityKey: sha256('x') }, { durableKey: sha256('x') }])
      expect(identityOf({}, PLAIN, 680, createIngestTenant([], change))?.durable).not.toBe(durable());
    const rekeyed = createIngestTenant([], { epochKey: (epoch) => sha256(`other ${epoch}`) });
    expect(identityOf({}, PLAIN, 680, rekeyed)?.durable).toBe(durable());
    expect(identityOf({}, PLAIN, 680, rekeyed)?.visitorId).not.toBe(identityOf()?.visitorId);
  });

  it('rotate with the epoch, the durable one not', () => {
    const ids = [679, 680, 681].map((epoch) => identityOf({}, PLAIN, epoch));
    expect(new Set(ids.map((id) => id?.visitorId)).size).toBe(3);
    expect(new Set(ids.map((id) => id?.durable)).size).toBe(1);
    expect(ids.map((id) => id?.epoch)).toEqual([679, 680, 681]);
  });

  it('are what the contract writes down, computed again by other means', () => {
    const id = identityOf();
    expect(id?.visitorId).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(id?.durable).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const mac = createHmac('sha256', tenant.epochKey(680)).update(`acme|${id?.durable}`).digest();
    expect(id?.visitorId).toBe(mac.subarray(0, 16).toString('base64url'));
    expect(visitorIdOf(tenant, id?.durable ?? '', 680)).toBe(id?.visitorId);
  });
});

describe('currentEpoch', () => {
  const DAY = 86_400_000;

  it('counts periods since 1970', () => {
    const times = [0, DAY - 1, DAY, 30 * DAY - 1, 30 * DAY];
    expect(times.map((now) => currentEpoch(now, 30))).toEqual([0, 0, 0, 0, 1]);
    expect(currentEpoch(NOW, 30)).toBe(680);
    expect(currentEpoch(NOW, 1)).toBe(20_412);
  });
});

describe('confidenceOf', () => {
  it('is 0.99 for a repeat, 0.6 for a first sighting, 0 for nobody', () => {
    const id = identityOf();
    const all = [confidenceOf(id, true), confidenceOf(id, false), confidenceOf(null, true)];
    expect(all).toEqual([0.99, 0.6, 0]);
  });
});
