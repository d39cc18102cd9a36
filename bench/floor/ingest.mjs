import { createDecipheriv, createECDH, createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createGroupWriter, serveJson } from './server.mjs';

/**
 * The floor of an ingest on this runtime and driver: reads, parses, decrypts (without further checks), parses, writes the
 * rows that gpd writes durably, and answers as many bytes. The last argument can name the only tables that it writes.
 */

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
function createOpener(kid, privateKey) {
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

const SCHEMA = `CREATE TABLE nonces (kid text not null, nonce text not null, dated_at bigint not null,
  primary key (kid, nonce)) WITHOUT ROWID;
CREATE INDEX nonces_dated_at ON nonces (dated_at);
CREATE TABLE sightings (kid text not null, durable text not null, first_at bigint not null, last_at bigint not null,
  seen bigint not null, primary key (kid, durable)) WITHOUT ROWID;
CREATE TABLE visitor_index (kid text not null, visitor_id text not null, durable text not null, epoch integer not null,
  primary key (kid, visitor_id)) WITHOUT ROWID;
CREATE INDEX visitor_index_durable ON visitor_index (kid, durable);
CREATE TABLE network_marks (day integer not null, kid text not null, durable text not null, network text not null,
  primary key (day, kid, durable, network)) WITHOUT ROWID;
CREATE TABLE network_days (day integer not null, kid text not null, durable text not null, networks integer not null,
  primary key (day, kid, durable)) WITHOUT ROWID;
CREATE TABLE decisions (kid text not null, request_id text not null, decided_at bigint not null, class text not null,
  durable text, verdict text not null, salt text not null, commitment text not null, primary key (kid, request_id));
CREATE INDEX decisions_durable ON decisions (kid, durable);
CREATE INDEX decisions_decided_at ON decisions (kid, decided_at);`;

/**
 * @typedef {{ kid: string, nonce: string, durable: string, visitorId: string, requestId: string, now: number,
 *   verdict: string }} Entry
 */

const EXPIRES_MS = 900_000;
const EPOCH = 690;
const DAY = 20_777;

/** @type {import('./server.mjs').Statement<Entry>[]} */
const STATEMENTS = [
  [
    'INSERT INTO nonces (kid, nonce, dated_at)',
    'ON CONFLICT DO NOTHING',
    (e) => [e.kid, e.nonce, e.now + EXPIRES_MS],
  ],
  [
    'INSERT INTO sightings (kid, durable, first_at, last_at, seen)',
    'ON CONFLICT (kid, durable) DO UPDATE SET seen = seen + 1, last_at = excluded.last_at',
    (e) => [e.kid, e.durable, e.now, e.now, 1],
  ],
  [
    'INSERT INTO visitor_index (kid, visitor_id, durable, epoch)',
    'ON CONFLICT DO NOTHING',
    (e) => [e.kid, e.visitorId, e.durable, EPOCH],
  ],
  [
    'INSERT INTO network_marks (day, kid, durable, network)',
    'ON CONFLICT DO NOTHING',
    (e) => [DAY, e.kid, e.durable, 'AAAAAAAAAAAAAAAAAAAAAA'],
  ],
  [
    'INSERT INTO network_days (day, kid, durable, networks)',
    'ON CONFLICT DO NOTHING',
    (e) => [DAY, e.kid, e.durable, 1],
  ],
  [
    'INSERT INTO decisions (kid, request_id, decided_at, class, durable, verdict, salt, commitment)',
    '',
    (e) => [e.kid, e.requestId, e.now, 'human', e.durable, e.verdict, e.nonce, e.durable],
  ],
];

const IDS_BYTES = 90;
const [file = '', kid = '', keyFile = '', answerBytes = '0', verdictBytes = '0', tables = ''] =
  process.argv.slice(2);
const open = createOpener(kid, readFileSync(keyFile));
const tableOf = (/** @type {string} */ insert) => insert.split(' ')[2] ?? '';
const chosen = STATEMENTS.filter(([insert]) => tables === '' || tables.split(',').includes(tableOf(insert)));
const write = await createGroupWriter(file, SCHEMA, chosen);
const verdict = 'v'.repeat(Number(verdictBytes));
const filler = 'a'.repeat(Math.max(0, Number(answerBytes) - IDS_BYTES));
let count = 0;

serveJson((bundle, answer) => {
  const { nonce, signals } = JSON.parse(open(bundle));
  const device = signals.graphics.canvasHash + signals.fonts;
  const durable = createHash('sha256').update(device).digest('base64url');
  const visitorId = durable.slice(0, 22);
  count += 1;
  const requestId = `req_${String(count).padStart(26, '0')}`;
  write({ kid, nonce, durable, visitorId, requestId, now: Date.now(), verdict }, () =>
    answer(200, { visitorId, requestId, filler }),
  );
});
