import { makeGroupWriter, PRAGMAS } from './group.mjs';

/** What one accepted bundle leaves in gpd's database. */

const SCHEMA = `${PRAGMAS}
CREATE TABLE nonces (kid text not null, nonce text not null, dated_at bigint not null,
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

/** @type {import('./group.mjs').Statement<Entry>[]} */
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

/**
 * @param {string} file
 * @returns {Promise<(entry: Entry, done: () => void) => void>}
 */
export function makeWriter(file) {
  return makeGroupWriter(file, SCHEMA, STATEMENTS);
}
