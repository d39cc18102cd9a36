/**
 * Constants of gpd-seal/1 (contract section 2). The browser uses them too: neither this file nor context.ts
 * may import `node:` modules.
 */
export const SEAL_VERSION = 'gpd-seal/1';
export const ASYMMETRIC_ALG = 'ECDH-P256+HKDF-SHA256+AES-256-GCM';
export const SYMMETRIC_ALG = 'HKDF-SHA256+AES-256-GCM';
export const IV_BYTES = 12;
export const TAG_BYTES = 16;
export const POINT_BYTES = 65;
export const KEY_BYTES = 32;
/** First byte of an uncompressed point (SEC 1 section 2.3.3). OpenSSL would take hybrid 0x06 and 0x07 too. */
export const UNCOMPRESSED = 0x04;
