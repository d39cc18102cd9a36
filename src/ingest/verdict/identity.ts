import type { Config } from '../../config.ts';
import { DAY } from '../../lib/clock.ts';
import { hmacSha256, hmacSha256Text } from '../../lib/crypto.ts';
import type { Json } from '../../lib/json.ts';
import { type Signals, saysAnything } from '../../schema/signals.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import type { Facts } from './facts.ts';

/**
 * Identifies a device: the stable signals, the ids computed from them, and when such an id may belong to
 * several people.
 */

export interface Identity {
  /** The part of the durableId after `kid|`; it never leaves the server. */
  readonly durable: string;
  readonly visitorId: string;
  readonly epoch: number;
}

export interface IdentifiedDevice extends Identity {
  readonly epochEndsAt: number;
  readonly network: string;
  readonly day: number;
  /** True when this network of the device was counted today. */
  readonly marked: boolean;
}

/** Each stable signal of a request under a keyed hash, and all of them together, which is what identifies. */
export interface KeyedSignals {
  readonly signals: readonly { readonly name: string; readonly value: string }[];
  readonly joint: string;
}

/** The facts known about a device when a visit looks it up; only `spread` includes this visit. */
export interface KnownDevice {
  readonly seen: boolean;
  /** A reviewer found that this device is no automation. */
  readonly neverAutomation: boolean;
  /** This network of the device was counted today. */
  readonly marked: boolean;
  /** Spread of the id over networks, including this sighting. */
  readonly spread: {
    /** Client networks of this id today. */
    readonly networksToday: number;
    /** (id, network) pairs of this id in the last seven days. */
    readonly pairsOfWeek: number;
    /** All such pairs of the tenant in the last seven days. */
    readonly tenantPairsOfWeek: number;
  };
}

/*
 * The stable signals (signals.md section 4) survive a restart, a private window, a resize, a zoom and a minor
 * update. Versions, languages, time zone, viewport, plugins and addresses are left out.
 */

/** The facts that identity looks at. */
type DeviceFacts = Pick<Facts, 'signals' | 'agent' | 'defenses'>;

const hasRfp = ({ defenses }: DeviceFacts): boolean => defenses.includes('firefox-rfp');
const isBrave = ({ defenses }: DeviceFacts): boolean => defenses.includes('brave');

const SOFTWARE_GPU = /SwiftShader|llvmpipe|softpipe|Microsoft Basic Render|^Mozilla$/i;

/** With Metal or Vulkan the name of the chip is inside the suffix that normaliseGpu cuts off. */
function chipOf(renderer: string): string {
  const angle = /^ANGLE \((.*)\)$/.exec(renderer)?.[1] ?? renderer;
  const metal = /Metal Renderer: ([^,]+)/.exec(angle)?.[1];
  const vulkan = /Vulkan [\d.]+ \((.+?)(?: \(0x[0-9a-f]+\))?\)/i.exec(angle)?.[1];
  return metal ?? vulkan ?? angle;
}

/** The renderer without driver, Direct3D and OpenGL suffixes; null if it does not describe the machine. */
export function normaliseGpu(renderer: string | null | undefined): string | null {
  if (renderer == null || renderer.trim() === '' || SOFTWARE_GPU.test(renderer)) return null;
  // The patterns would take quadratic time on many spaces in a row.
  return chipOf(renderer.replace(/\s+/g, ' '))
    .replace(/,?\s*(?:\b(?:Direct3D|D3D|OpenGL|Vulkan|vs_|ps_)|Unspecified Version\b).*$/i, '')
    .replace(/\(0x[0-9a-f]+\)|, or similar|\/PCIe|\/SSE2/gi, '')
    .replace(/[\s,]+/g, ' ')
    .trim()
    .toLowerCase();
}

/** No hardware renderer at all: every such machine draws alike. */
function softwareGraphicsOnly({ signals }: DeviceFacts): boolean {
  return signals.graphics !== null && normaliseGpu(signals.graphics.renderer) === null;
}

const isNewSafari = ({ agent }: DeviceFacts): boolean => agent.browser === 'safari' && agent.major >= 17;

/**
 * Gecko divides the screen size by the zoom and rounds: it reports 1366 by 768 pixels as 911 by 512 at 150 %.
 * This computes the screen's pixels, as the nearest number that the rounding cannot change: a multiple of two
 * up to 200 %, of four up to 400 %.
 */
function ownPixels(reported: number, dpr: number): number {
  const grid = dpr <= 1 ? 1 : 2 ** Math.ceil(Math.log2(dpr));
  return Math.round((reported * dpr) / grid) * grid;
}

function screenSize(facts: DeviceFacts): number[] | null {
  const { signals, agent } = facts;
  const { width, height, dpr } = signals.screen ?? {};
  if (width == null || height == null || hasRfp(facts) || isNewSafari(facts)) return null;
  const scale = agent.engine === 'gecko' && dpr != null && dpr >= 0.1 && dpr <= 16 ? dpr : null;
  const size = scale === null ? [width, height] : [ownPixels(width, scale), ownPixels(height, scale)];
  return size.sort((a, b) => a - b);
}

function cores({ signals, agent }: DeviceFacts): number | null {
  const reported = signals.page?.hardwareConcurrency;
  if (reported == null) return null;
  if (agent.engine !== 'gecko') return reported;
  return reported <= 4 ? 4 : 8;
}

function canvas(facts: DeviceFacts): string | null {
  const { signals, agent } = facts;
  const noisy =
    hasRfp(facts) ||
    isBrave(facts) ||
    isNewSafari(facts) ||
    (agent.browser === 'firefox' && agent.major >= 120);
  return !noisy && signals.graphics?.canvasStable === true ? (signals.graphics.canvasHash ?? null) : null;
}

function audio(facts: DeviceFacts): number | null {
  const { signals, agent } = facts;
  const usable = agent.engine === 'blink' && !isBrave(facts) && signals.graphics?.audioStable !== false;
  return usable ? (signals.graphics?.audioSum ?? null) : null;
}

/** The inputs of the stable hash by name; null is a value too: the browser does not report it. */
export function stableInputs(facts: DeviceFacts): Record<string, Json> {
  const { signals, agent } = facts;
  const { page, media, engine, screen } = signals;
  const uaData = page?.uaData;
  // In the order of RFC 8785, so that plain serialisation is already canonical.
  return {
    architecture: uaData?.architecture ?? null,
    audio: audio(facts),
    bitness: uaData?.bitness ?? null,
    canvas: canvas(facts),
    colorDepth: screen?.colorDepth ?? null,
    cores: cores(facts),
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
    screen: screenSize(facts),
    touch: hasRfp(facts) ? null : (page?.maxTouchPoints ?? null),
  };
}

const FROM_SCREEN_AND_GRAPHICS = new Set(['gpu', 'screen', 'colorDepth', 'audio', 'canvas']);
const MORE_INPUTS = 2;

/**
 * The identity floor: without screen, graphics and two more inputs, all empty bundles would be one visitor.
 */
function aboveFloor(signals: Signals, inputs: Readonly<Record<string, Json>>): boolean {
  const sized = signals.screen?.width != null && signals.screen.height != null;
  if (!sized || !saysAnything(signals.graphics)) return false;
  let otherInputs = 0;
  for (const name in inputs)
    if (inputs[name] !== null && !FROM_SCREEN_AND_GRAPHICS.has(name)) otherInputs += 1;
  return otherInputs >= MORE_INPUTS;
}

/** Half of the HMAC: 22 characters of base64url (contract 3.4). */
const VISITOR_ID_BYTES = 16;

export function currentEpoch(now: number, epochDays: number): number {
  return Math.floor(now / (epochDays * DAY));
}

/** The time from which this visitorId is no longer given. */
export function epochEnd(epoch: number, epochDays: number): number {
  return (epoch + 1) * epochDays * DAY;
}

/** visitorId = base64url(HMAC(tenant epoch key, durableId)), 22 characters. */
export function visitorIdOf(tenant: Tenant, durable: string, epoch: number): string {
  const full = hmacSha256(tenant.epochKey(epoch), `${tenant.kid}|${durable}`);
  return full.subarray(0, VISITOR_ID_BYTES).toString('base64url');
}

/** Exact match only: the same stable signals are the same visitor. Null below the identity floor. */
export function identify(tenant: Tenant, facts: DeviceFacts, epoch: number): Identity | null {
  const inputs = stableInputs(facts);
  if (!aboveFloor(facts.signals, inputs)) return null;
  const stableHash = hmacSha256(tenant.identityKey, JSON.stringify(inputs));
  const durable = hmacSha256Text(tenant.durableKey, stableHash);
  return { durable, visitorId: visitorIdOf(tenant, durable, epoch), epoch };
}

/** The identity as a visit of this day records it. */
export const identifiedOn = (
  identity: Identity,
  epochDays: number,
  visit: Pick<IdentifiedDevice, 'network' | 'day' | 'marked'>,
): IdentifiedDevice => ({ ...identity, epochEndsAt: epochEnd(identity.epoch, epochDays), ...visit });

/** Confidence in the identity, not that it is a bot (interface section 2). */
export function confidenceOf(identity: Identity | null, isSeen: boolean): number {
  if (!identity) return 0;
  return isSeen ? 0.99 : 0.6;
}

/* When an id may belong to several people, so that nothing important should depend on it (contract 3.4). */

/** The settings that decide it. */
export type SharedIdLimits = Pick<Config, 'max_networks_per_day' | 'min_identity_bits' | 'collision_risk'>;

/** With fewer pairs, a tenant's week is too small for shares. */
const MIN_PAIRS = 5000;

/**
 * The entropy of the canvas alone, the strongest stable signal (Hiding in the Crowd, 2018): several signals
 * are correlated, so their bits are not added.
 */
const PRIOR_SHARE = 2 ** -8.6;
/** The share of a day's returning devices that come from a second network: an assumption. */
const MOVES = 0.1;
/** One device leaves a pair a day from one network. */
const OWN_PAIRS = 7;
/** Prior count for devices that a week of 5,000 pairs has not shown yet (Krichevsky and Trofimov). */
const UNSEEN = 0.5;

/** Families whose members look alike by nature. An iPad in desktop mode is a Macintosh with touch points. */
export function isCoarse(facts: DeviceFacts): boolean {
  const { signals, agent } = facts;
  const ipad = agent.os === 'macos' && agent.engine === 'webkit' && (signals.page?.maxTouchPoints ?? 0) > 1;
  return agent.os === 'ios' || ipad || isNewSafari(facts) || hasRfp(facts) || softwareGraphicsOnly(facts);
}

/**
 * The chance that a second network on one day is another device with the same values, not the known one that
 * moved (docs/classification.md, Shared ids). It is 0 for the first network of a day: marks of earlier days
 * are deleted, so it may not be new.
 */
export function collisionChance({ seen, marked, spread }: Omit<KnownDevice, 'neverAutomation'>): number {
  const { networksToday, pairsOfWeek, tenantPairsOfWeek } = spread;
  if (!seen || marked || networksToday < 2) return 0;
  const otherDevices =
    tenantPairsOfWeek < MIN_PAIRS
      ? Math.max(1, tenantPairsOfWeek) * PRIOR_SHARE
      : UNSEEN + Math.max(0, pairsOfWeek - 1 - OWN_PAIRS);
  return otherDevices / (otherDevices + MOVES);
}

/** True for too many networks in a day, or too large a share of the tenant's week. */
export function isShared(spread: KnownDevice['spread'], limits: SharedIdLimits): boolean {
  if (spread.networksToday > limits.max_networks_per_day) return true;
  const { pairsOfWeek, tenantPairsOfWeek } = spread;
  return tenantPairsOfWeek >= MIN_PAIRS && pairsOfWeek / tenantPairsOfWeek >= 2 ** -limits.min_identity_bits;
}

/** True above one of the three limits. The caller has checked isCoarse. */
export const mayBeShared = (device: KnownDevice, limits: SharedIdLimits): boolean =>
  isShared(device.spread, limits) || collisionChance(device) > limits.collision_risk;

const VALUE_BYTES = 16;

/**
 * The stable signals of `transparency.retain = "summary"` (contract 3.5): counted under a keyed hash, never
 * kept as values.
 */
export function keySignals(populationKey: Uint8Array, facts: DeviceFacts): KeyedSignals {
  const inputs = stableInputs(facts);
  const keyed = (text: string): string =>
    hmacSha256(populationKey, text).subarray(0, VALUE_BYTES).toString('base64url');
  const signals = Object.entries(inputs).flatMap(([name, input]) =>
    input === null ? [] : [{ name, value: keyed(`${name}|${JSON.stringify(input)}`) }],
  );
  // Joint is all of them together: what identifies.
  return { signals, joint: keyed(`joint|${JSON.stringify(inputs)}`) };
}
