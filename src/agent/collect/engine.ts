import { shortHash } from '../../browser/encoding.ts';
import { type Group, number, text, within } from './read.ts';

/** Reads properties that differ between JavaScript engines. */

const HASH_MS = 1500;

/** Calls functions whose last digits the standard leaves to the engine and its C library. */
function readMathDigits({ Math: math }: typeof globalThis): string {
  return [
    math.acosh(1e154),
    math.asinh(0.7),
    math.atanh(0.3),
    math.cbrt(100),
    math.cos(13 * math.E),
    math.cosh(1.7),
    math.exp(math.PI),
    math.expm1(1.1),
    math.log1p(0.9),
    math.PI ** -100,
    math.sin(1e300),
    math.sinh(1.3),
    math.tan(-1e300),
    math.tanh(0.6),
  ].join();
}

/**
 * Reads the engine's message for a property of null. The literal stays in the source, because JavaScriptCore
 * quotes it.
 */
function readNullMessage(): string {
  try {
    return String((null as unknown as { a: unknown }).a);
  } catch (error) {
    return (error as Error).message;
  }
}

/** `eval` is only read as text, never called: 33 characters in V8, 37 in Gecko and JavaScriptCore. */
function evalLength(realm: typeof globalThis): number {
  return realm.Function.prototype.toString.call(Reflect.get(realm, 'eval')).length;
}

/** @param realm one whose built-ins no library of the page has replaced */
export const readEngine = (realm: typeof globalThis) => ({
  evalLength: number(() => evalLength(realm)),
  errorMessage: text(readNullMessage),
  digits: text(() => readMathDigits(realm)),
});

export async function collectEngine({
  digits,
  ...read
}: ReturnType<typeof readEngine>): Promise<Group<'engine'>> {
  const math = digits && (await within(HASH_MS, () => shortHash(new TextEncoder().encode(digits))));
  return { ...read, math };
}
