import { createGroupWriter, serveJson } from './server.mjs';

/**
 * The floor of a grant: reads, parses, writes the rows of a grant durably and in groups, and answers as many bytes. It has
 * no keys, no commitments and no Merkle tree.
 */

const [file = ''] = process.argv.slice(2);

const SCHEMA = `CREATE TABLE consent_principals (kid text not null, principal text not null, wrapped_key text, gpc boolean not null,
  erased_at bigint, primary key (kid, principal)) WITHOUT ROWID;
CREATE TABLE consent_state (kid text not null, principal text not null, purpose text not null, choice text not null,
  policy_version integer not null, expires_at bigint, at bigint not null, seq bigint not null, hash text not null,
  primary key (kid, principal, purpose)) WITHOUT ROWID;
CREATE TABLE consent_openings (kid text not null, seq bigint not null, principal text not null, purpose text not null,
  choice text not null, at bigint not null, salt text not null, detail text not null, primary key (kid, seq));
CREATE INDEX openings_of_principal ON consent_openings (kid, principal, seq);
CREATE TABLE ledger_entries (kid text not null, seq bigint not null, hash text not null, entry text not null,
  primary key (kid, seq));`;

/** Texts as long as the real hashes, keys and entries. */
const [HASH, WRAPPED, ENTRY] = ['h'.repeat(64), 'w'.repeat(80), 'e'.repeat(210)];
const [SALT, DETAIL] = ['s'.repeat(22), 'd'.repeat(90)];
const KID = 'bench';
const CHOICE = 'granted';

/** @typedef {{ principal: string, purpose: string, seq: number, now: number }} Grant */
/** @type {import('./server.mjs').Statement<Grant>[]} */
const STATEMENTS = [
  [
    'INSERT INTO consent_principals (kid, principal, wrapped_key, gpc, erased_at)',
    'ON CONFLICT DO NOTHING',
    (grant) => [KID, grant.principal, WRAPPED, 0, null],
  ],
  [
    'INSERT INTO consent_state (kid, principal, purpose, choice, policy_version, expires_at, at, seq, hash)',
    'ON CONFLICT (kid, principal, purpose) DO UPDATE SET seq = excluded.seq',
    ({ principal, purpose, seq, now }) => [KID, principal, purpose, CHOICE, 0, now, now, seq, HASH],
  ],
  [
    'INSERT INTO consent_openings (kid, seq, principal, purpose, choice, at, salt, detail)',
    '',
    ({ principal, purpose, seq, now }) => [KID, seq, principal, purpose, CHOICE, now, SALT, DETAIL],
  ],
  ['INSERT INTO ledger_entries (kid, seq, hash, entry)', '', ({ seq }) => [KID, seq, HASH, ENTRY]],
];

const write = await createGroupWriter(file, SCHEMA, STATEMENTS);
let size = 0;

serveJson(({ principalId, purposes: [purpose] }, answer) => {
  const seq = size;
  size += 1;
  const principal = String(principalId).padStart(43, 'p');
  write({ principal, purpose, seq, now: Date.now() }, () => {
    const entry = { seq, hash: HASH };
    answer(201, { entries: [{ purpose, ...entry }], ...entry });
  });
});
