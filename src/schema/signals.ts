import { z } from 'zod';

/**
 * The signals a browser agent reports (signals.md section 1). Fields may be added, and every one may be missing or
 * null: a browser without it, or a privacy defense. No value of these is ever stored.
 */

/** A lone surrogate is no text: it could neither be hashed (RFC 8785) nor stored. */
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
    /** Permissions that were granted, and those denied that nobody can deny by hand. */
    granted: number,
    barred: number,
    /** The page counts as used, and no input was ever there. */
    activated: flag,
  }),
  input: z.object({ moves: number, downUpMs: number, forceless: flag, offGrid: flag }),
} as const;

type Groups = typeof groups;
type GroupName = keyof Groups;

/** Null stands for a group that is missing, null or badly typed. */
export type Signals = { readonly [K in GroupName]: z.infer<Groups[K]> | null };

export interface ReadSignals {
  readonly signals: Signals;
  /** A group that was there but badly typed: such a bundle is never `human` (contract 3.4). */
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

/** Compiled once: every bundle goes through all of them. */
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

/** A group of which nothing is said is as good as none. */
export function saysAnything(group: Readonly<Record<string, unknown>> | null): boolean {
  return group !== null && Object.values(group).some((value) => value != null);
}
