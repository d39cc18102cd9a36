/** A source of `size` unpredictable bytes; `node:crypto.randomBytes` in production, a seeded one in tests. */
export type Random = (size: number) => Buffer;
