import { shortHash } from '../../browser/encoding.ts';
import { attempt } from '../../browser/page.ts';
import { canvasIn, type FrameRealm } from './frame.ts';
import { text, within } from './read.ts';

/** Collects the parts of the group `graphics`: canvas, WebGL and audio. */

const WIDTH = 160;
const HEIGHT = 48;
const FLAT = [51, 102, 204, 255] as const;
const HASH_MS = 1500;

type Pixels = Uint8ClampedArray<ArrayBuffer>;

/** `willReadFrequently` draws in software, so the pixels do not depend on the graphics driver. */
function paint(realm: FrameRealm | null, draw: (context: CanvasRenderingContext2D) => void): Pixels | null {
  return attempt(() => {
    const canvas = canvasIn(realm);
    canvas.width = WIDTH;
    canvas.height = HEIGHT;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    if (!context) return null;
    draw(context);
    return context.getImageData(0, 0, WIDTH, HEIGHT).data as Pixels;
  });
}

/**
 * Draws text, curves and blending, where fonts, rasterisers and rounding differ. No emoji: finding the font
 * is slow.
 */
function drawScene(context: CanvasRenderingContext2D): void {
  const gradient = context.createLinearGradient(0, 0, WIDTH, HEIGHT);
  gradient.addColorStop(0, '#0b7285');
  gradient.addColorStop(1, '#e8590c');
  context.fillStyle = gradient;
  context.fillRect(4, 20, 120, 24);
  context.fillStyle = '#212529';
  context.textBaseline = 'alphabetic';
  context.font = '15px sans-serif';
  context.fillText('Wären Öfen quick? 0179', 2, 16);
  context.font = 'italic 13px serif';
  context.fillText('ffi & Ωж', 6, 38);
  context.globalCompositeOperation = 'multiply';
  context.fillStyle = 'rgba(250, 176, 5, 0.6)';
  context.beginPath();
  context.arc(120, 26, 17.3, 0, 5.1);
  context.bezierCurveTo(90, 8, 150, 50, 104, 12);
  context.fill();
}

function countBadPixels(pixels: Pixels): number {
  let bad = 0;
  for (let at = 0; at < pixels.length; at += 4) {
    if (FLAT.some((value, channel) => pixels[at + channel] !== value)) bad += 1;
  }
  return bad;
}

function drawFlat(context: CanvasRenderingContext2D): void {
  context.fillStyle = `rgb(${FLAT.slice(0, 3).join(',')})`;
  context.fillRect(0, 0, WIDTH, HEIGHT);
}

/** Paints the scene twice, to see whether it stays the same, and a flat colour. */
export const paintAll = (realm: FrameRealm | null) => ({
  first: paint(realm, drawScene),
  second: paint(realm, drawScene),
  flat: paint(realm, drawFlat),
});

export async function collectCanvas({ first, second, flat }: ReturnType<typeof paintAll>) {
  return {
    canvasHash: first && (await within(HASH_MS, () => shortHash(first))),
    canvasStable: first && second && first.every((value, at) => value === second[at]),
    canvasFlatBadPixels: flat && countBadPixels(flat),
  };
}

type Gl = WebGLRenderingContext;

/**
 * WebKit and Blink mask the plain names with this prefix. Gecko gives them, and warns about the extension.
 */
const MASKED = /^WebKit/;

function readUnmasked(
  gl: Gl,
  plain: number,
  extended: 'UNMASKED_RENDERER_WEBGL' | 'UNMASKED_VENDOR_WEBGL',
): unknown {
  const name: unknown = gl.getParameter(plain);
  if (typeof name === 'string' && !MASKED.test(name)) return name;
  const extension = gl.getExtension('WEBGL_debug_renderer_info');
  return extension ? gl.getParameter(extension[extended]) : name;
}

export const readRenderer = (gl: Gl): unknown => readUnmasked(gl, gl.RENDERER, 'UNMASKED_RENDERER_WEBGL');

export function collectWebgl() {
  const gl = attempt(() => document.createElement('canvas').getContext('webgl'));
  if (!gl) return { vendor: null, renderer: null };
  return {
    vendor: text(() => readUnmasked(gl, gl.VENDOR, 'UNMASKED_VENDOR_WEBGL')),
    renderer: text(() => readRenderer(gl)),
  };
}

const SAMPLES = 5000;
const RATE = 44_100;
/** Generous, because the sum is part of the identity: with null a slow machine would be another visitor. */
const AUDIO_MS = 1500;

/** Sums the tail of a compressed tone: the compressor's arithmetic differs by engine and platform. */
async function renderSum(): Promise<number> {
  const context = new OfflineAudioContext(1, SAMPLES, RATE);
  const tone = context.createOscillator();
  tone.type = 'triangle';
  tone.frequency.value = 10_000;
  const squeeze = context.createDynamicsCompressor();
  squeeze.threshold.value = -50;
  squeeze.knee.value = 40;
  squeeze.ratio.value = 12;
  squeeze.attack.value = 0;
  squeeze.release.value = 0.25;
  tone.connect(squeeze).connect(context.destination);
  tone.start();
  const samples = (await context.startRendering()).getChannelData(0);
  return samples.subarray(SAMPLES - 500).reduce((sum, sample) => sum + Math.abs(sample), 0);
}

export async function collectAudio() {
  const sums = await within(AUDIO_MS, () => Promise.all([renderSum(), renderSum()]));
  return { audioSum: sums?.[0] ?? null, audioStable: sums && sums[0] === sums[1] };
}
