import { describe, expect, it } from 'vitest';
import { readAgent } from '../../../src/ingest/verdict/facts.ts';
import { isCoarse, normaliseGpu, stableInputs } from '../../../src/ingest/verdict/identity.ts';
import { createFacts } from '../../support/make-signals.ts';

describe('normaliseGpu', () => {
  it.each<[string, string | null]>([
    [
      'ANGLE (Intel, Intel(R) UHD Graphics 620 Direct3D11 vs_5_0 ps_5_0, D3D11)',
      'intel intel(r) uhd graphics 620',
    ],
    [
      'ANGLE (Intel, Intel(R) UHD Graphics 620 (0x00005917) Direct3D11 vs_5_0 ps_5_0, D3D11)',
      'intel intel(r) uhd graphics 620',
    ],
    [
      'ANGLE (Intel, Intel(R) UHD Graphics 620 Direct3D11 vs_5_0 ps_5_0, D3D11-27.20.100.8681)',
      'intel intel(r) uhd graphics 620',
    ],
    [
      'ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6)',
      'intel mesa intel(r) uhd graphics 620 (kbl gt2)',
    ],
    [
      'ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6 (Core Profile) Mesa 25.0.7)',
      'intel mesa intel(r) uhd graphics 620 (kbl gt2)',
    ],
    ['NVIDIA GeForce GTX 1650/PCIe/SSE2', 'nvidia geforce gtx 1650'],
    ['NVIDIA GeForce GTX 980, or similar', 'nvidia geforce gtx 980'],
    [
      'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Direct3D11 vs_5_0 ps_5_0, D3D11)',
      'nvidia nvidia geforce rtx 3060',
    ],
    ['Apple GPU', 'apple gpu'],
    ['Adreno (TM) 740', 'adreno (tm) 740'],
    ['ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)', null],
    ['Google SwiftShader', null],
    ['llvmpipe (LLVM 15.0.7, 256 bits)', null],
    ['softpipe', null],
    ['ANGLE (Microsoft, Microsoft Basic Render Driver Direct3D11 vs_5_0 ps_5_0, D3D11)', null],
    ['Mozilla', null],
    ['', null],
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

describe('software graphics', () => {
  it('are those without a renderer that says something, where graphics are told at all', () => {
    expect(isCoarse(createFacts())).toBe(false);
    expect(isCoarse(createFacts({ graphics: { renderer: null } }))).toBe(true);
    expect(isCoarse(createFacts({ graphics: { renderer: 'llvmpipe' } }))).toBe(true);
    expect(isCoarse(createFacts({ graphics: null }))).toBe(false);
  });
});

describe('the screen', () => {
  const screenOf = (userAgent: string, [width, height]: readonly [number, number], dpr: number | null) => {
    const facts = createFacts({ screen: { width, height, dpr } }, {}, { agent: readAgent(userAgent) });
    return stableInputs(facts)['screen'];
  };
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0';
  const chrome =
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36';

  /** Gecko divides a CSS pixel into 60 units and gives a device pixel a whole number of them. */
  const zoomed = (sizes: readonly [number, number], zoom: number, scale = 1) => {
    const units = Math.max(1, Math.round(60 / scale / zoom));
    const [width, height] = sizes.map((size) => Math.round((size * units) / 60));
    return [[width ?? 0, height ?? 0], 60 / units] as const;
  };

  it.each([
    ['1366 by 768', [1366, 768], 1, [0.3, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.2, 1.33, 1.5, 1.7, 2]],
    ['1920 by 1080', [1920, 1080], 1, [0.3, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.2, 1.33, 1.5, 1.7, 2, 2.4, 3, 4]],
    ['2560 by 1440', [2560, 1440], 1, [0.5, 0.67, 0.9, 1, 1.1, 1.33, 1.7, 2, 3, 4]],
    ['3840 by 2160 scaled by 2', [3840, 2160], 2, [0.3, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.2, 1.33, 1.5, 1.7, 2]],
  ] as const)('of Firefox is its own pixels at every zoom: %s', (_name, size, scale, zooms) => {
    for (const zoom of zooms) {
      const [reported, dpr] = zoomed(size, zoom, scale);
      expect([zoom, screenOf(firefox, [reported[0], reported[1]], dpr)]).toEqual([zoom, [...size].reverse()]);
    }
  });

  it('of Firefox is taken as reported without a ratio that could be', () => {
    for (const dpr of [null, 0, -1, 0.01, 1e300])
      expect(screenOf(firefox, [911, 512], dpr)).toEqual([512, 911]);
  });

  it('of Chromium is what it tells: its zoom does not reach the screen', () => {
    expect(screenOf(chrome, [800, 600], 1.5)).toEqual([600, 800]);
  });
});
