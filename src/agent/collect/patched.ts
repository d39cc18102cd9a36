import { attempt } from '../../browser/page.ts';
import type { FrameRealm } from './frame.ts';

/** Finds native functions that the page or an extension replaced. */

type Callable = (...args: never[]) => unknown;

const OF_NAVIGATOR = 'webdriver userAgent platform plugins languages vendor hardwareConcurrency'.split(' ');

/** The members behind each name in `tells.patched`, without `getContext`, which session recorders wrap. */
const WATCHED: readonly (readonly [name: string, owner: string, members: readonly string[]])[] = [
  ...OF_NAVIGATOR.map((name) => [name, 'Navigator', [name]] as const),
  ['screen', 'Screen', ['width', 'height', 'availWidth', 'availHeight', 'colorDepth']],
  ['canvas', 'HTMLCanvasElement', ['toDataURL', 'toBlob']],
  ['canvas', 'CanvasRenderingContext2D', ['getImageData']],
  ['audio', 'AudioBuffer', ['getChannelData', 'copyFromChannel']],
  ['audio', 'AnalyserNode', ['getFloatFrequencyData']],
  ['webgl', 'WebGLRenderingContext', ['getParameter', 'readPixels']],
];

/** A proxy also prints as native, but without the name. */
function printsAsNative(fn: Callable, member: string, print: Callable): boolean {
  const source = String(Reflect.apply(print, fn, []));
  return new RegExp(`^\\s*function (?:get )?${member}\\(\\) \\{\\s*\\[native code\\]\\s*\\}\\s*$`).test(
    source,
  );
}

/** A native accessor or method throws a TypeError on a receiver that is not its own (Web IDL section 3.7). */
function acceptsAnyReceiver(fn: Callable): boolean {
  try {
    Reflect.apply(fn, {}, []);
    return true;
  } catch {
    return false;
  }
}

function isPatched(holder: object, member: string, print: Callable): boolean {
  const descriptor = Object.getOwnPropertyDescriptor(holder, member);
  const fn = (descriptor && (Reflect.get(descriptor, 'get') ?? descriptor.value)) as unknown;
  // A missing member is not patched: LibreWolf removes webdriver by a setting.
  if (fn === undefined) return false;
  if (typeof fn !== 'function') return true;
  const native = fn as Callable;
  return (
    Object.hasOwn(native, 'prototype') || !printsAsNative(native, member, print) || acceptsAnyReceiver(native)
  );
}

function hasPatched(owner: string, members: readonly string[], print: Callable): boolean {
  const prototype = (globalThis as unknown as Record<string, { prototype?: object } | undefined>)[owner]
    ?.prototype;
  if (!prototype) return false;
  const instance = { Navigator: navigator, Screen: screen }[owner];
  return members.some(
    (member) =>
      isPatched(prototype, member, print) || (instance !== undefined && Object.hasOwn(instance, member)),
  );
}

/** Unbound on purpose, because it is applied to other functions. */
const toStringOf = (realm: typeof globalThis): Callable =>
  Reflect.get(realm.Function.prototype, 'toString') as Callable;

/**
 * Finds native functions that scripts of the page replaced.
 * @param realm an untouched realm, whose Function.prototype.toString can be trusted; null to trust the page's
 */
export function findPatched(realm: FrameRealm | null): string[] | null {
  return attempt(() => {
    const pageToString = toStringOf(globalThis);
    const print = toStringOf(realm ?? globalThis);
    const found = WATCHED.filter(([, owner, members]) => hasPatched(owner, members, print));
    const names = new Set(found.map(([name]) => name));
    if (Object.hasOwn(pageToString, 'prototype') || !printsAsNative(pageToString, 'toString', print))
      names.add('Function.toString');
    return [...names];
  });
}
