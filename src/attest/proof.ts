import { compactVerify, importJWK } from 'jose';
import { z } from 'zod';
import { orElse } from '../lib/or-else.ts';

/** A DBSC proof (W3C dbsc-1, section 9.10): a JWT by ES256 alone, the key in its header at the registration and nowhere later. */

const MAX_PROOF = 4096;
const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const keySchema = z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: coordinate, y: coordinate });
const headSchema = z.object({
  alg: z.literal('ES256'),
  typ: z.literal('dbsc+jwt'),
  jwk: keySchema.optional(),
  crit: z.undefined().optional(),
});
const claimsSchema = z.object({ jti: z.string(), authorization: z.string().optional() });
export type DeviceKey = Pick<z.infer<typeof keySchema>, 'x' | 'y'>;
export type Proof = NonNullable<ReturnType<typeof readProof>>;

/** A structured field's string; browsers have sent it bare too. */
export const unquote = (field: string): string => field.replace(/^"([^"]*)"$/, '$1');

/** What it says, which nobody has proven yet. */
export function readProof(field: string) {
  const text = unquote(field);
  // 64 bytes, in one spelling: what follows the last bit is zero.
  if (text.length > MAX_PROOF || !/^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/.test(text)) return null;
  return orElse(() => {
    const [head = '', claims = ''] = text.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    const { jwk = null } = headSchema.parse(JSON.parse(head));
    return { text, jwk, ...claimsSchema.parse(JSON.parse(claims)) };
  }, null);
}

export async function isProven({ text }: Proof, { x, y }: DeviceKey): Promise<boolean> {
  try {
    const key = await importJWK({ kty: 'EC', crv: 'P-256', x, y }, 'ES256');
    await compactVerify(text, key, { algorithms: ['ES256'] });
    return true;
  } catch {
    return false;
  }
}
