/** A source of `size` unpredictable bytes; `node:crypto.randomBytes` in production, a seeded one in tests. */
export type Random = (size: number) => Buffer;

const POOL_BYTES = 4096;

/**
 * Draws from the system in larger pieces and hands every byte out once. For nonces, ids and salts; a long-lived key is
 * drawn by itself.
 */
export function poolRandom(random: Random): Random {
  let pool: Buffer = Buffer.alloc(0);
  let at = 0;
  return (size) => {
    if (size > POOL_BYTES) return random(size);
    if (at + size > pool.length) {
      pool = random(POOL_BYTES);
      at = 0;
    }
    at += size;
    return pool.subarray(at - size, at);
  };
}
