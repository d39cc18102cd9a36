import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Facts, readAgent } from '../../../src/ingest/verdict/facts.ts';
import {
  collisionChance,
  confidenceOf,
  currentEpoch,
  type Identity,
  identify,
  isCoarse,
  isShared,
  normaliseGpu,
  stableInputs,
  visitorIdOf,
} from '../../../src/ingest/verdict/identity.ts';
import { sha256 } from '../../../src/lib/crypto.ts';
import { createIngestTenant, NOW } from '../../support/make.ts';
import { createFacts, createRawSignals, type createSignals } from '../../support/make-signals.ts';

import * as browsers from './support/browsers.ts';
import { type Change, changed, named, nothing, put } from './support/browsers.ts';

type Changes = Parameters<typeof createSignals>[0];
type Defenses = Facts['defenses'];

const tenant = createIngestTenant();
const PLAIN: Defenses = [];

function identityOf(changes: Changes = {}, defenses = PLAIN, epoch = 680, who = tenant): Identity | null {
  return identify(who, createFacts(changes, {}, { defenses }), epoch);
}

const durable = (changes?: Changes, defenses?: Defenses): string | undefined =>
  identityOf(changes, defenses)?.durable;

const LINUX = 'X11; Linux x86_64';
const chrome = (version: string, system = LINUX): string =>
  `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version} Safari/537.36`;
const firefox = (version: string): string =>
  `Mozilla/5.0 (${LINUX}; rv:${version}) Gecko/20100101 Firefox/${version}`;
const safari = (version: string, system = 'Macintosh; Intel Mac OS X 10_15_7'): string =>
  `Mozilla/5.0 (${system}) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/${version} Safari/605.1.15`;
const uaData = createRawSignals()['page']?.['uaData'] as object;
const INTEL = 'ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6';

describe('the id', () => {
  it.each<[string, Changes]>([
    ['a resize', { screen: { innerWidth: 900, innerHeight: 600, outerWidth: 910, outerHeight: 700 } }],
    ['a task bar that hides', { screen: { availWidth: 2560, availHeight: 1400 } }],
    ['a zoom', { screen: { dpr: 1.5, innerWidth: 1200, innerHeight: 800 } }],
    ['a turned screen', { screen: { width: 1440, height: 2560 } }],
    ['a minor update', { page: { userAgent: chrome('142.0.7444.59'), appVersion: '5.0 (X11)' } }],
    ['a major update', { page: { userAgent: chrome('150.0'), uaData: { ...uaData, platformVersion: '6' } } }],
    ['another language', { page: { language: 'fr-FR', languages: ['fr-FR', 'en'] } }],
    ['a journey', { time: { zone: 'Asia/Tokyo', offsetMinutes: -540, clockStepMs: 1 } }],
    ['a plug-in', { page: { pluginCount: 5, pdfViewer: true } }],
    ['cookies switched off, a GPC signal', { page: { cookies: false, gpc: true } }],
    ['high contrast', { media: { forcedColors: true } }],
    ['a mouse unplugged', { media: { pointer: 'none', hover: false } }],
    ['an extension', { tells: { globals: ['__ext'], patched: ['canvas'], cdp: true } }],
    ['a worker that did not start, a frame that did not load', { worker: null, frame: null }],
    ['input', { input: { moves: 12, downUpMs: 80 } }],
    ['automation', { page: { webdriver: true } }],
    ['more memory than is told', { page: { deviceMemory: 32 } }],
    ['a driver update', { graphics: { renderer: `${INTEL} (Core Profile) Mesa 25.0.7)` } }],
  ])('survives %s', (_what, changes) => {
    expect(durable(changes)).toBe(durable());
  });

  it.each<[string, Changes]>([
    ['engine', { page: { userAgent: safari('16.0', LINUX) } }],
    ['operating system', { page: { userAgent: chrome('142.0.0.0', 'Windows NT 10.0; Win64; x64') } }],
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
    expect(durable(changes)).toBeDefined();
    expect(durable(changes)).not.toBe(durable());
  });
});

describe('what a browser makes useless is left out', () => {
  type Groups = Readonly<Record<string, object>>;
  const canvas = { graphics: { canvasHash: 'decaf' } };
  const audio = { graphics: { audioSum: 1 } };
  const size = { screen: { width: 1000, height: 1000 } };
  const touch = { page: { maxTouchPoints: 5 } };

  it.each<[string, string, Groups, Defenses, boolean]>([
    ['canvas of Brave', chrome('142.0'), canvas, ['brave'], true],
    ['audio of Brave', chrome('142.0'), audio, ['brave'], true],
    ['canvas of Firefox 119', firefox('119.0'), canvas, PLAIN, false],
    ['canvas of Firefox 120', firefox('120.0'), canvas, PLAIN, true],
    ['audio of Firefox', firefox('140.0'), audio, PLAIN, true],
    ['canvas of Safari 16', safari('16.6'), canvas, PLAIN, false],
    ['canvas of Safari 17', safari('17.0'), canvas, PLAIN, true],
    ['audio of Safari', safari('16.6'), audio, PLAIN, true],
    ['screen of Safari 17', safari('17.0'), size, PLAIN, true],
    ['screen of Safari 16', safari('16.6'), size, PLAIN, false],
    ['canvas under RFP', firefox('119.0'), canvas, ['firefox-rfp'], true],
    ['screen under RFP', firefox('140.0'), size, ['firefox-rfp'], true],
    ['touch points under RFP', firefox('140.0'), touch, ['firefox-rfp'], true],
    ['touch points of Firefox', firefox('140.0'), touch, PLAIN, false],
  ])('%s', (_what, userAgent, changes, defenses, isSame) => {
    const after = { ...changes, page: { userAgent, ...changes['page'] } };
    expect(durable(after, defenses) === durable({ page: { userAgent } }, defenses)).toBe(isSame);
  });

  it('canvas that changes from read to read', () => {
    const unstable = (canvasHash: string) => durable({ graphics: { canvasHash, canvasStable: false } });
    expect(unstable('decaf')).toBe(unstable('coffee'));
  });

  it('tells Firefox apart by two tiers of cores only', () => {
    const cores = (n: number) => durable({ page: { userAgent: firefox('140.0'), hardwareConcurrency: n } });
    expect(cores(2)).toBe(cores(4));
    expect(cores(6)).toBe(cores(32));
    expect(cores(4)).not.toBe(cores(8));
  });
});

describe('the identity floor', () => {
  const named = ['page', 'worker', 'frame', 'media', 'engine', 'time', 'tells', 'input', 'fonts'];
  const bare = Object.fromEntries(named.map((group) => [group, null]));

  it.each<[string, Changes, boolean]>([
    ['everything', {}, true],
    ['no screen', { screen: null }, false],
    ['a screen without a height', { screen: { height: null } }, false],
    ['no graphics', { graphics: null }, false],
    ['screen and graphics alone', bare, false],
    ['one more input', { ...bare, fonts: '0f' }, false],
    ['two more inputs', { ...bare, fonts: '0f', engine: { evalLength: 33 } }, true],
  ])('%s: identified %s', (_what, changes, identified) => {
    expect(identityOf(changes) !== null).toBe(identified);
  });
});

describe('durableId and visitorId', () => {
  it('are a tenant’s own, and hang on each of its keys', () => {
    const sameKeys = createIngestTenant([], { kid: 'other' });
    expect(identityOf({}, PLAIN, 680, sameKeys)?.visitorId).not.toBe(identityOf()?.visitorId);
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

  it('have an epoch by periods since 1970, and a confidence', () => {
    const DAY = 86_400_000;
    const times = [0, 30 * DAY - 1, 30 * DAY];
    expect(times.map((now) => currentEpoch(now, 30))).toEqual([0, 0, 1]);
    expect([currentEpoch(NOW, 30), currentEpoch(NOW, 1)]).toEqual([680, 20_412]);
    const id = identityOf();
    const all = [confidenceOf(id, true), confidenceOf(id, false), confidenceOf(null, true)];
    expect(all).toEqual([0.99, 0.6, 0]);
  });
});

describe('normaliseGpu', () => {
  const UHD = 'ANGLE (Intel, Intel(R) UHD Graphics 620';
  it.each<[string, string | null]>([
    [`${UHD} Direct3D11 vs_5_0 ps_5_0, D3D11)`, 'intel intel(r) uhd graphics 620'],
    [`${UHD} (0x00005917) Direct3D11 vs_5_0 ps_5_0, D3D11)`, 'intel intel(r) uhd graphics 620'],
    [`${UHD} Direct3D11 vs_5_0 ps_5_0, D3D11-27.20.100.8681)`, 'intel intel(r) uhd graphics 620'],
    [`${INTEL})`, 'intel mesa intel(r) uhd graphics 620 (kbl gt2)'],
    [`${INTEL} (Core Profile) Mesa 25.0.7)`, 'intel mesa intel(r) uhd graphics 620 (kbl gt2)'],
    ['NVIDIA GeForce GTX 1650/PCIe/SSE2', 'nvidia geforce gtx 1650'],
    ['NVIDIA GeForce GTX 980, or similar', 'nvidia geforce gtx 980'],
    ['Apple GPU', 'apple gpu'],
    ['Adreno (TM) 740', 'adreno (tm) 740'],
    ['ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)', null],
    ['llvmpipe (LLVM 15.0.7, 256 bits)', null],
    ['softpipe', null],
    ['ANGLE (Microsoft, Microsoft Basic Render Driver Direct3D11 vs_5_0 ps_5_0, D3D11)', null],
    ['Mozilla', null],
    ['   ', null],
  ])('%s', (renderer, expected) => {
    expect(normaliseGpu(renderer)).toBe(expected);
  });

  it.each([
    ['Metal', (chip: string) => `ANGLE (Apple, ANGLE Metal Renderer: ${chip}, Unspecified Version)`],
    ['Vulkan', (chip: string) => `ANGLE (NVIDIA, Vulkan 1.3.242 (${chip} (0x00002503)), NVIDIA-535.54.3)`],
    ['Direct3D11', (chip: string) => `ANGLE (NVIDIA, ${chip} Direct3D11 vs_5_0 ps_5_0, D3D11)`],
    ['OpenGL', (chip: string) => `ANGLE (AMD, ${chip} (radeonsi, navi23, LLVM 15.0.7), OpenGL 4.6)`],
  ])('still tells chips apart behind ANGLE on %s', (_what, renderer) => {
    const chips = ['Apple M1', 'Apple M2', 'NVIDIA GeForce RTX 3060', 'AMD Radeon RX 6600'];
    expect(new Set(chips.map((chip) => normaliseGpu(renderer(chip)))).size).toBe(chips.length);
  });

  it('knows nothing of null and undefined', () => {
    expect([normaliseGpu(null), normaliseGpu(undefined)]).toEqual([null, null]);
  });
});

describe('the screen', () => {
  const screenOf = (userAgent: string, [width, height]: readonly [number, number], dpr: number | null) => {
    const facts = createFacts({ screen: { width, height, dpr } }, {}, { agent: readAgent(userAgent) });
    return stableInputs(facts)['screen'];
  };

  /** Gecko divides a CSS pixel into 60 units and gives a device pixel a whole number of them. */
  const zoomed = (sizes: readonly [number, number], zoom: number, scale = 1) => {
    const units = Math.max(1, Math.round(60 / scale / zoom));
    const [width, height] = sizes.map((size) => Math.round((size * units) / 60));
    return [[width ?? 0, height ?? 0], 60 / units] as const;
  };
  const ZOOMS = [0.3, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.2, 1.33, 1.5, 1.7, 2];

  it.each([
    ['1366 by 768', [1366, 768], 1, ZOOMS],
    ['1920 by 1080', [1920, 1080], 1, [...ZOOMS, 2.4, 3, 4]],
    ['2560 by 1440', [2560, 1440], 1, [0.5, 0.67, 0.9, 1, 1.1, 1.33, 1.7, 2, 3, 4]],
    ['3840 by 2160 scaled by 2', [3840, 2160], 2, ZOOMS],
  ] as const)('of Firefox is its own pixels at every zoom: %s', (_name, size, scale, zooms) => {
    for (const zoom of zooms) {
      const [reported, dpr] = zoomed(size, zoom, scale);
      const found = screenOf(firefox('153.0'), [reported[0], reported[1]], dpr);
      expect([zoom, found]).toEqual([zoom, [...size].reverse()]);
    }
  });

  it('of Firefox is taken as reported without a ratio that could be', () => {
    for (const dpr of [null, 0, -1, 0.01, 1e300])
      expect(screenOf(firefox('153.0'), [911, 512], dpr)).toEqual([512, 911]);
  });

  it('of Chromium is what it tells: its zoom does not reach the screen', () => {
    expect(screenOf(chrome('156.0'), [800, 600], 1.5)).toEqual([600, 800]);
  });
});

/** Contract 3.4 (a) and the arithmetic of (b) and (c): when an id may belong to several people. */

const versioned = (version: string): Change => {
  const userAgent = String(browsers.safari().signals.page['userAgent']);
  return named(userAgent.replace('Version/18.1', `Version/${version}`), 'MacIntel');
};

describe('a family that is coarse by nature', () => {
  it.each<readonly [string, () => browsers.Browser, Change, boolean]>([
    ['an iPhone', browsers.iPhone, nothing, true],
    ['Chrome on an iPhone', () => browsers.iPhone('CriOS/141.0.0.0 Mobile/15E148'), nothing, true],
    ['an old iPhone', () => browsers.iPhone('Version/15.6 Mobile/15E148'), nothing, true],
    ['an old browsers.iPad in desktop mode', browsers.iPad, versioned('15.6'), true],
    ['Safari 17', browsers.safari, versioned('17.0'), true],
    ['resistFingerprinting', browsers.firefoxRfp, nothing, true],
    ['SwiftShader', browsers.chrome, browsers.SWIFTSHADER, true],
    ['llvmpipe', browsers.linuxChrome, browsers.LLVMPIPE, true],
    [
      'the basic renderer',
      browsers.chrome,
      browsers.drawnBy('ANGLE (Microsoft, Microsoft Basic Render Driver)'),
      true,
    ],
    ['no WebGL at all', browsers.chrome, browsers.NO_WEBGL, true],
    ['Chrome on Windows', browsers.chrome, nothing, false],
    ['Chrome on Android', browsers.androidChrome, nothing, false],
    ['Firefox', browsers.firefox, nothing, false],
    ['Brave', browsers.brave, nothing, false],
    ['Safari 16 on a Mac', browsers.safari, versioned('16.6'), false],
    [
      'Firefox with two marks of a defense',
      browsers.firefox,
      put.time({ zone: 'UTC', clockStepMs: 16.67 }),
      false,
    ],
  ])('%s', (_name, make, change, isOne) => {
    expect(isCoarse(changed(make, change).facts)).toBe(isOne);
  });

  it('is none where no graphics are told at all: that bundle is incomplete', () => {
    expect(isCoarse(createFacts({ graphics: null }))).toBe(false);
  });
});

describe('an id seen too widely', () => {
  const limits = { max_networks_per_day: 20, min_identity_bits: 12, collision_risk: 0.01 };
  const spread = (networksToday: number, pairsOfWeek: number, tenantPairsOfWeek: number) => ({
    networksToday,
    pairsOfWeek,
    tenantPairsOfWeek,
  });
  it.each([
    ['20 networks in a day', spread(20, 20, 100), false],
    ['21 networks in a day', spread(21, 21, 100), true],
    ['a share of 2^-12 of 8,192 pairs', spread(1, 2, 8192), true],
    ['a share below 2^-12', spread(1, 2, 8193), false],
    ['one pair of 5,000: below 2^-12', spread(1, 1, 5000), false],
    ['two pairs of 5,000: above 2^-12', spread(1, 2, 5000), true],
    ['two pairs of 4,999: too few to say', spread(1, 2, 4999), false],
  ])('%s', (_name, spread, shared) => {
    expect(isShared(spread, limits)).toBe(shared);
  });

  it('obeys the settings', () => {
    expect(isShared(spread(4, 4, 10), { ...limits, max_networks_per_day: 3 })).toBe(true);
    expect(isShared(spread(1, 2, 5000), { ...limits, min_identity_bits: 2 })).toBe(false);
    expect(isShared(spread(1, 1250, 5000), { ...limits, min_identity_bits: 2 })).toBe(true);
  });
});

describe('the chance that a second network of the day is another device', () => {
  const chance = (
    networksToday: number,
    tenantPairsOfWeek: number,
    { pairsOfWeek = networksToday, seen: isSeen = true, marked = false } = {},
  ): number =>
    collisionChance({ seen: isSeen, marked, spread: { networksToday, pairsOfWeek, tenantPairsOfWeek } });

  it('is above 1 % from the first pair on, and grows with the tenant', () => {
    const byPairs = [0, 1, 10, 100, 4999].map((pairs) => Number(chance(2, pairs).toFixed(3)));
    expect(byPairs).toEqual([0.025, 0.025, 0.205, 0.72, 0.992]);
  });

  it('is that of the tenant’s own week from 5,000 pairs on', () => {
    expect(chance(2, 5000)).toBeCloseTo(0.5 / 0.6);
    expect(chance(2, 5000, { pairsOfWeek: 8 })).toBeCloseTo(0.5 / 0.6);
    expect(chance(2, 5000, { pairsOfWeek: 9 })).toBeCloseTo(1.5 / 1.6);
  });

  it('is zero for a new id, on a network it has today, and on the first network of the day', () => {
    expect(chance(2, 100, { seen: false })).toBe(0);
    expect(chance(2, 100, { marked: true })).toBe(0);
    expect(chance(1, 100, { pairsOfWeek: 6 })).toBe(0);
  });
});
