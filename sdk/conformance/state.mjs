#!/usr/bin/env node
// Signs a state as gpd would, for the cases about `gpd_consent`: `node state.mjs first '{"iat": 1767225600}'` prints it. The keys are
// public, like everything in this folder; no gpd has them.
import { createPrivateKey, sign } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const KEYS = {
  first: {
    kty: 'EC',
    crv: 'P-256',
    x: 'M6oeCKBCMQXuaj3GcnUKqMjYD_yPx6dqAWDpq9hXUSo',
    y: 'moxp7KZeKjdbyJyv-51QjKBT_maefX7BUmV7T8nMCyc',
    d: 'AAz_lDK9Ofy9Jhjznn7BZ3gRHeCcTe9G_VL1VvIBIYo',
  },
  second: {
    kty: 'EC',
    crv: 'P-256',
    x: 'XoXNkXnE7a3CopEgu6qEkMdcy29TY_mTCZDt3_nO-QM',
    y: 'l2IpYi5XHy7bE6Zv4xawv5f7s-eWBh_42t9k4SbwiD0',
    d: 'ZsFberVp4im_U4PmyoAVbncdzylPaA3HaIZ7lZ1lcHg',
  },
};

/** @param {object} value */
const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * @param {'first' | 'second'} key @param {Record<string, unknown>} [claims] instead of the usual ones
 * @param {Record<string, unknown>} [header] likewise
 */
export function signState(key, claims = {}, header = {}) {
  const iat = Number(claims['iat'] ?? 1_767_225_600);
  const usual = { iss: 'https://gpd.example', kid: 'shop', sub: 'subject-1', iat, exp: iat + 300 };
  const head = { alg: 'ES256', kid: `key-${key}`, typ: 'JWT', ...header };
  const message = `${encode(head)}.${encode({ ...usual, p: ['newsletter', 'support'], seq: 7, ...claims })}`;
  const privateKey = createPrivateKey({ key: KEYS[key], format: 'jwk' });
  const signature = sign('sha256', Buffer.from(message), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${message}.${signature.toString('base64url')}`;
}

/** A key as `GET /v1/consent/state-keys` has it. @param {'first' | 'second'} key */
export function publicKey(key) {
  const { kty, crv, x, y } = KEYS[key];
  return { kty, crv, x, y, kid: `key-${key}`, alg: 'ES256', use: 'sig' };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [key = 'first', claims = '{}', header = '{}'] = process.argv.slice(2);
  process.stdout.write(
    `${signState(/** @type {'first' | 'second'} */ (key), JSON.parse(claims), JSON.parse(header))}\n`,
  );
}
