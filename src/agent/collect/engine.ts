import { shortHash } from '../bytes.ts';
import { type Group, number, text, within } from './read.ts';

const HASH_MS = 1500;

/** Functions whose last digits the standard leaves to the engine and its C library. */
function mathDigits(): string {
  return [
    Math.acosh(1e154),
    Math.asinh(0.7),
    Math.atanh(0.3),
    Math.cbrt(100),
    Math.cos(13 * Math.E),
    Math.cosh(1.7),
    Math.exp(Math.PI),
    Math.expm1(1.1),
    Math.log1p(0.9),
    Math.PI ** -100,
    Math.sin(1e300),
    Math.sinh(1.3),
    Math.tan(-1e300),
    Math.tanh(0.6),
  ].join();
}

/** The wording of a null access. The literal stays in the source, as JavaScriptCore quotes it. */
function nullAccess(): string {
  try {
    return String((null as unknown as { a: unknown }).a);
  } catch (error) {
    return (error as Error).message;
  }
}

/** Only read as text, never called: 33 characters in V8, 37 in Gecko and JavaScriptCore. */
function evalLength(): number {
  return Function.prototype.toString.call(Reflect.get(globalThis, 'eval')).length;
}

export async function collectEngine(): Promise<Group<'engine'>> {
  return {
    evalLength: number(evalLength),
    errorMessage: text(nullAccess),
    math: await within(HASH_MS, () => shortHash(new TextEncoder().encode(mathDigits()))),
  };
}
