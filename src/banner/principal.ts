/** Creates the principal of a browser that has none: a random secret, and the id that follows from it. */

const SECRET_BYTES = 32;
const KEY_BYTES = 16;

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

const random = (size: number): Uint8Array<ArrayBuffer> => crypto.getRandomValues(new Uint8Array(size));

/** An Idempotency-Key. */
export const createKey = (): string => base64url(random(KEY_BYTES));

/** A browser principal: `b_` + base64url(SHA-256(its 32 secret bytes)), contract section 7. */
export async function createPrincipal(): Promise<{ readonly secret: string; readonly principalId: string }> {
  const bytes = random(SECRET_BYTES);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return { secret: base64url(bytes), principalId: `b_${base64url(hash)}` };
}
