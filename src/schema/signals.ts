import { z } from 'zod';

/**
 * The signals that the agent reports (signals.md section 1). Fields may be added, and each may be missing or
 * null, because a browser lacks it or a privacy defense hides it. No value is ever stored.
 */

/** A lone surrogate can neither be hashed (RFC 8785) nor stored. */
const wellFormed = (max: number) =>
  z
    .string()
    .max(max)
    .refine((value) => value.isWellFormed());
const text = wellFormed(2048).nullish();
const flag = z.boolean().nullish();
const number = z.number().nullish();
const texts = z.array(wellFormed(512)).max(256).nullish();
const brands = z
  .array(z.object({ brand: wellFormed(256), version: wellFormed(64) }))
  .max(32)
  .nullish();

const groups = {
  page: z.object({
    userAgent: text,
    appVersion: text,
    platform: text,
    vendor: text,
    language: text,
    languages: texts,
    webdriver: flag,
    hardwareConcurrency: number,
    deviceMemory: number,
    maxTouchPoints: number,
    pluginCount: number,
    pdfViewer: flag,
    cookies: flag,
    brave: flag,
    chromeObject: flag,
    gpc: flag,
    uaData: z
      .object({
        brands,
        mobile: flag,
        platform: text,
        architecture: text,
        bitness: text,
        model: text,
        platformVersion: text,
        fullVersionList: brands,
      })
      .nullish(),
  }),
  worker: z.object({
    userAgent: text,
    platform: text,
    languages: texts,
    hardwareConcurrency: number,
    webdriver: flag,
    renderer: text,
    uaData: z.object({ brands, platform: text }).nullish(),
    cdp: flag,
  }),
  frame: z.object({ webdriver: flag, platform: text, userAgent: text, srcdocPreattached: flag }),
  screen: z.object({
    width: number,
    height: number,
    availWidth: number,
    availHeight: number,
    innerWidth: number,
    innerHeight: number,
    outerWidth: number,
    outerHeight: number,
    colorDepth: number,
    dpr: number,
    orientation: text,
    /** It has `window.orientation`, as phones do. */
    turns: flag,
  }),
  media: z.object({
    pointer: z.enum(['fine', 'coarse', 'none']).nullish(),
    hover: flag,
    colorGamut: text,
    hdr: flag,
    forcedColors: flag,
  }),
  graphics: z.object({
    vendor: text,
    renderer: text,
    canvasHash: text,
    canvasStable: flag,
    canvasFlatBadPixels: number,
    audioSum: number,
    audioStable: flag,
  }),
  fonts: z.string().regex(/^[0-9a-f]{0,256}$/),
  engine: z.object({ evalLength: number, errorMessage: text, math: text }),
  time: z.object({ zone: text, offsetMinutes: number, clockStepMs: number }),
  tells: z.object({
    globals: texts,
    cdp: flag,
    debugsPageAlone: flag,
    notificationMismatch: flag,
    patched: texts,
    processType: text,
    /** Number of granted permissions, and of denied ones that a person cannot deny. */
    granted: number,
    barred: number,
    /** True if the page counts as used although it never had input. */
    activated: flag,
  }),
  input: z.object({ moves: number, downUpMs: number, forceless: flag, offGrid: flag }),
} as const;

type Groups = typeof groups;
type GroupName = keyof Groups;

/** Null for a group that is missing, null or badly typed. */
export type Signals = { readonly [K in GroupName]: z.infer<Groups[K]> | null };

export interface ReadSignals {
  readonly signals: Signals;
  /** True if a group was badly typed: such a bundle is never `human` (contract 3.4). */
  readonly malformed: boolean;
  /** `page.gpc === true`, however badly the rest of the group is typed: GPC only ever reduces permission. */
  readonly gpc: boolean;
}

function saysGpc(page: unknown): boolean {
  return (
    typeof page === 'object' &&
    page !== null &&
    Object.hasOwn(page, 'gpc') &&
    (page as { gpc: unknown }).gpc === true
  );
}

const names = Object.keys(groups) as GroupName[];

/** Compiled once, because every bundle is parsed by all of them. */
const compiled = Object.fromEntries(
  names.map((name) => [name, z.compile(groups[name] as z.ZodType)]),
) as unknown as Groups;

/** Reads each group apart, so that one bad field costs its group and never the request. */
export function readSignals(raw: Readonly<Record<string, unknown>>): ReadSignals {
  const signals: Partial<Record<GroupName, unknown>> = {};
  let malformed = false;
  for (const name of names) {
    const value = Object.hasOwn(raw, name) ? raw[name] : null;
    if (value === null || value === undefined) {
      signals[name] = null;
      continue;
    }
    const result = compiled[name].safeParse(value);
    signals[name] = result.success ? result.data : null;
    malformed ||= !result.success;
  }
  return { signals: signals as Signals, malformed, gpc: saysGpc(raw['page']) };
}

/** A group without any value counts as missing. */
export function saysAnything(group: Readonly<Record<string, unknown>> | null): boolean {
  return group !== null && Object.values(group).some((value) => value != null);
}
