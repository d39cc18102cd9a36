import { describe, expect, it } from 'vitest';
import { normaliseGpu, softwareGraphicsOnly } from '../../src/ingest/stable.ts';
import { makeSignals } from '../support/make-signals.ts';

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

  it('takes no longer for a hostile text than for an honest one', () => {
    const started = performance.now();
    for (const text of [
      '-1'.repeat(1024),
      'D3D'.repeat(680),
      'ANGLE ('.repeat(290),
      ' ,'.repeat(1024),
      '(0x'.repeat(680),
    ])
      normaliseGpu(text);
    expect(performance.now() - started).toBeLessThan(200);
  });
});

describe('software graphics', () => {
  it('are those without a renderer that says something, where graphics are told at all', () => {
    expect(softwareGraphicsOnly(makeSignals())).toBe(false);
    expect(softwareGraphicsOnly(makeSignals({ graphics: { renderer: null } }))).toBe(true);
    expect(softwareGraphicsOnly(makeSignals({ graphics: { renderer: 'llvmpipe' } }))).toBe(true);
    expect(softwareGraphicsOnly(makeSignals({ graphics: null }))).toBe(false);
  });
});
