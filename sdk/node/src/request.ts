import { ConsentError } from './errors.ts';

/** Reads the two headers that matter from the requests of Node, Fetch and frameworks on top of them. */

export type HeaderSource = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
/** A request with `headers`, such as Node's, Express's or that of Fetch, or headers alone. */
export type RequestLike = { readonly headers: HeaderSource } | HeaderSource;

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

export function valuesOf(headers: HeaderSource, name: string): readonly string[] {
  // Asked for its method, because a framework may bring a Headers of its own class.
  if (typeof headers['get'] === 'function') return [(headers as Headers).get(name) ?? []].flat();
  return Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => (value ?? []) as string | readonly string[]);
}

/** @throws {ConsentError} invalid-request */
export function readRequest(
  method: string,
  request: RequestLike,
): { readonly cookie: string; readonly gpc: boolean } {
  const inner = isObject(request) && 'headers' in request ? request.headers : request;
  if (!isObject(inner)) {
    throw new ConsentError(method, 'invalid-request', { hint: 'request is a request or its headers' });
  }
  const headers = inner as HeaderSource;
  const signals = valuesOf(headers, 'sec-gpc').flatMap((value) => value.split(','));
  return {
    cookie: valuesOf(headers, 'cookie').join('; '),
    gpc: signals.some((signal) => signal.trim() === '1'),
  };
}
