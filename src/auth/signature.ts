import { compactVerify } from 'jose';
import type { SigningKey } from './jwks.ts';

async function isSignedBy(token: string, { alg, key }: SigningKey): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [alg] });
    return true;
  } catch {
    return false;
  }
}

/** Whether one of these keys signed a compact JWS, by the one algorithm that the key is for. */
export async function isSigned(token: string, candidates: readonly SigningKey[]): Promise<boolean> {
  for (const candidate of candidates) if (await isSignedBy(token, candidate)) return true;
  return false;
}
