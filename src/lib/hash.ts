import { createHmac, hash, timingSafeEqual } from 'node:crypto';

export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer');
}

/** The same as base64url, without a Buffer in between. */
export function sha256Text(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url');
}

export function hmacSha256(key: Uint8Array, data: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(data).digest();
}

/** The same as base64url, without a Buffer in between. */
export function hmacSha256Text(key: Uint8Array, data: string | Uint8Array): string {
  return createHmac('sha256', key).update(data).digest('base64url');
}

const BLOCK_BYTES = 64;

function padOf(key: Uint8Array, byte: number): Buffer {
  const pad = Buffer.alloc(BLOCK_BYTES, byte);
  key.forEach((value, i) => {
    pad[i] = value ^ byte;
  });
  return pad;
}

/**
 * The same for many short texts under one key (RFC 2104, by two one-shot hashes): `createHmac` costs twice as much.
 * @param key at most 64 bytes
 */
export function makeHmacSha256(key: Uint8Array): (text: string) => string {
  const inner = padOf(key, 0x36);
  const outer = Buffer.concat([padOf(key, 0x5c), Buffer.alloc(32)]);
  let scratch = Buffer.concat([inner, Buffer.alloc(1024)]);
  return (text) => {
    // A UTF-16 unit has at most three bytes in UTF-8.
    if (BLOCK_BYTES + text.length * 3 > scratch.length)
      scratch = Buffer.concat([inner, Buffer.alloc(text.length * 3)]);
    const end = BLOCK_BYTES + scratch.write(text, BLOCK_BYTES);
    // As text: half the price of a Buffer.
    outer.write(hash('sha256', scratch.subarray(0, end), 'binary'), BLOCK_BYTES, 'binary');
    return hash('sha256', outer, 'base64url');
  };
}

/** Constant-time for inputs of one length; the length itself is not a secret anywhere in gpd. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
