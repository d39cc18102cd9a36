import type { Json } from '../lib/json.ts';
import { type Signals, saysAnything } from '../schema/signals.ts';
import type { AgentFacts } from './user-agent.ts';

/**
 * The stable signals (signals.md section 4): what survives a restart, a private window, a resize, a zoom and a minor
 * update. Versions, languages, time zone, viewport, plugins and addresses stay out.
 */

/** Marks of privacy defenses that make an input unusable for identity. */
export interface Unusable {
  readonly rfp: boolean;
  readonly brave: boolean;
}

const SOFTWARE_GPU = /SwiftShader|llvmpipe|softpipe|Microsoft Basic Render|^Mozilla$/i;

/** The chip of a Metal or Vulkan back end stands inside what is cut off elsewhere. */
function chipOf(renderer: string): string {
  const angle = /^ANGLE \((.*)\)$/.exec(renderer)?.[1] ?? renderer;
  const metal = /Metal Renderer: ([^,]+)/.exec(angle)?.[1];
  const vulkan = /Vulkan [\d.]+ \((.+?)(?: \(0x[0-9a-f]+\))?\)/i.exec(angle)?.[1];
  return metal ?? vulkan ?? angle;
}

/** Renderer without driver, Direct3D and OpenGL suffixes; null when it says nothing about the machine. */
export function normaliseGpu(renderer: string | null | undefined): string | null {
  if (renderer == null || renderer.trim() === '' || SOFTWARE_GPU.test(renderer)) return null;
  // Many spaces in a row would cost the patterns the square of their number.
  return chipOf(renderer.replace(/\s+/g, ' '))
    .replace(/,?\s*(?:\b(?:Direct3D|D3D|OpenGL|Vulkan|vs_|ps_)|Unspecified Version\b).*$/i, '')
    .replace(/\(0x[0-9a-f]+\)|, or similar|\/PCIe|\/SSE2/gi, '')
    .replace(/[\s,]+/g, ' ')
    .trim()
    .toLowerCase();
}

/** No hardware renderer at all: every such machine draws alike. */
export function softwareGraphicsOnly(signals: Signals): boolean {
  return signals.graphics !== null && normaliseGpu(signals.graphics.renderer) === null;
}

export function isNewSafari(agent: AgentFacts): boolean {
  return agent.browser === 'safari' && agent.major >= 17;
}

/**
 * Gecko divides the screen by the zoom as well, and rounds: 1366 by 768 pixels are reported as 911 by 512 at 150 %. Back to
 * the screen's own pixels, to the nearest number that rounding cannot move: an even one up to 200 %, of four up to 400 %.
 */
function ownPixels(told: number, dpr: number): number {
  const grid = dpr <= 1 ? 1 : 2 ** Math.ceil(Math.log2(dpr));
  return Math.round((told * dpr) / grid) * grid;
}

function screenSize(signals: Signals, agent: AgentFacts, unusable: Unusable): number[] | null {
  const { width, height, dpr } = signals.screen ?? {};
  if (width == null || height == null || unusable.rfp || isNewSafari(agent)) return null;
  const scale = agent.engine === 'gecko' && dpr != null && dpr >= 0.1 && dpr <= 16 ? dpr : null;
  const size = scale === null ? [width, height] : [ownPixels(width, scale), ownPixels(height, scale)];
  return size.sort((a, b) => a - b);
}

function cores(signals: Signals, agent: AgentFacts): number | null {
  const reported = signals.page?.hardwareConcurrency;
  if (reported == null) return null;
  if (agent.engine !== 'gecko') return reported;
  return reported <= 4 ? 4 : 8;
}

function canvas(signals: Signals, agent: AgentFacts, unusable: Unusable): string | null {
  const noisy =
    unusable.rfp ||
    unusable.brave ||
    isNewSafari(agent) ||
    (agent.browser === 'firefox' && agent.major >= 120);
  return !noisy && signals.graphics?.canvasStable === true ? (signals.graphics.canvasHash ?? null) : null;
}

function audio(signals: Signals, agent: AgentFacts, unusable: Unusable): number | null {
  const usable = agent.engine === 'blink' && !unusable.brave && signals.graphics?.audioStable !== false;
  return usable ? (signals.graphics?.audioSum ?? null) : null;
}

/** The inputs of the stable hash by name; null is a value too: it says that the browser does not tell. */
export function stableInputs(signals: Signals, agent: AgentFacts, unusable: Unusable): Record<string, Json> {
  const { page, media, engine, screen } = signals;
  const uaData = page?.uaData;
  // In the order of RFC 8785, so that plain serialisation is already canonical.
  return {
    architecture: uaData?.architecture ?? null,
    audio: audio(signals, agent, unusable),
    bitness: uaData?.bitness ?? null,
    canvas: canvas(signals, agent, unusable),
    colorDepth: screen?.colorDepth ?? null,
    cores: cores(signals, agent),
    errorMessage: engine?.errorMessage ?? null,
    evalLength: engine?.evalLength ?? null,
    family: agent.engine === 'unknown' && agent.os === 'unknown' ? null : `${agent.engine} ${agent.os}`,
    fonts: signals.fonts,
    gamut: media?.colorGamut ?? null,
    gpu: normaliseGpu(signals.graphics?.renderer),
    hdr: media?.hdr ?? null,
    math: engine?.math ?? null,
    memory: page?.deviceMemory == null ? null : Math.min(page.deviceMemory, 8),
    model: uaData?.model ?? null,
    screen: screenSize(signals, agent, unusable),
    touch: unusable.rfp ? null : (page?.maxTouchPoints ?? null),
  };
}

const FROM_SCREEN_AND_GRAPHICS = new Set(['gpu', 'screen', 'colorDepth', 'audio', 'canvas']);
const MORE_INPUTS = 2;

/** The identity floor: without screen, graphics and two more inputs all empty bundles would be one visitor. */
export function aboveFloor(signals: Signals, inputs: Readonly<Record<string, Json>>): boolean {
  const sized = signals.screen?.width != null && signals.screen.height != null;
  if (!sized || !saysAnything(signals.graphics)) return false;
  let more = 0;
  for (const name in inputs) if (inputs[name] !== null && !FROM_SCREEN_AND_GRAPHICS.has(name)) more += 1;
  return more >= MORE_INPUTS;
}
