import { createDecipheriv, createECDH, createHmac } from 'node:crypto';

/** gpd-seal/1 opened with as little as it takes: no check that the primitives do not make by themselves. */

const VERSION = 'gpd-seal/1';
const ALG = 'ECDH-P256+HKDF-SHA256+AES-256-GCM';
const TAG_BYTES = 16;

/** @param {string | Buffer} part */
function prefixed(part) {
  const bytes = Buffer.from(part);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

/**
 * @param {string} kid
 * @param {Buffer} privateKey the 32-byte scalar of the tenant's seal key
 * @returns {(bundle: { epk: string, iv: string, ct: string }) => string} the plaintext
 */
export function makeOpener(kid, privateKey) {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(privateKey);
  const before = Buffer.concat([prefixed(VERSION), prefixed(ALG), prefixed(kid)]);
  const recipient = prefixed(ecdh.getPublicKey());
  const [keyLabel, aadLabel] = [prefixed('key'), prefixed('aad')];
  const lastBlock = Buffer.from([1]);
  return (bundle) => {
    const epk = Buffer.from(bundle.epk, 'base64');
    const iv = Buffer.from(bundle.iv, 'base64');
    const sealed = Buffer.from(bundle.ct, 'base64');
    const context = Buffer.concat([before, prefixed(epk), recipient]);
    const extracted = createHmac('sha256', VERSION).update(ecdh.computeSecret(epk)).digest();
    const key = createHmac('sha256', extracted).update(keyLabel).update(context).update(lastBlock).digest();
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.concat([aadLabel, context, prefixed(iv)]));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    return decipher.update(sealed.subarray(0, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
  };
}
