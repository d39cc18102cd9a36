/**
 * The schema of gpd on SQLite and on PostgreSQL, subject by subject. Later migrations add to it.
 *
 * - `kid`: the tenant. `durable`: keyed hash of a device. `principal`, `actor`, `by`: keyed reference of a person. No column has a raw
 *   signal, or a visitor's e-mail address or principal id as plain text.
 * - Moments are milliseconds since 1970; `hour` is the moment at which it begins, `day` counts days since 1970 (UTC).
 * - `wrapped…` is encrypted under the master key or under a key of the tenant, `sealed` under a key of the tenant.
 * - `mac` is computed with a key of the tenant: a row with a wrong or missing one counts as forged (ADR 0042).
 *
 * What PostgreSQL must not sample and when it vacuums is set for each table after each migration (src/db/migrate.ts).
 */

/** @typedef {import('knex').Knex} Knex @typedef {import('knex').Knex.CreateTableBuilder} Table */

/** @param {Table} t @param {string[]} names */
function texts(t, ...names) {
  for (const name of names) t.text(name).notNullable();
}

/** @param {Table} t @param {string[]} names */
function optionalTexts(t, ...names) {
  for (const name of names) t.text(name).nullable();
}

/** @param {Table} t @param {string[]} names */
function counts(t, ...names) {
  for (const name of names) t.bigInteger(name).notNullable();
}

/** Milliseconds since 1970. @param {Table} t @param {string[]} names */
const moments = (t, ...names) => counts(t, ...names);

/** @param {Table} t @param {string[]} names */
function optionalMoments(t, ...names) {
  for (const name of names) t.bigInteger(name).nullable();
}

/** Small numbers: generations, versions, days. @param {Table} t @param {string[]} names */
function integers(t, ...names) {
  for (const name of names) t.integer(name).notNullable();
}

/** Deleted with the tenant's row. The column `kid` of other tables has no foreign key: their rows are deleted in steps. @param {Table} t */
const ofTenant = (t) => t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');

/** Deleted with their decision. @param {Table} t @param {string} name */
const ofDecision = (t, name) =>
  t.foreign(['kid', name]).references(['kid', 'request_id']).inTable('decisions').onDelete('CASCADE');

/** @param {Knex} knex */
const isSqlite = (knex) => knex.client.dialect === 'sqlite3';

/**
 * Small rows under random keys: on SQLite the table is the index of its key, so that a row is written once and found by one descent.
 * @param {Knex} knex @param {string} body
 */
const createKeyed = (knex, body) => knex.raw(`CREATE TABLE ${body}${isSqlite(knex) ? ' WITHOUT ROWID' : ''}`);

/** Storage parameters of PostgreSQL. @param {Knex} knex @param {string} table @param {string[]} parameters */
async function store(knex, table, ...parameters) {
  if (!isSqlite(knex)) await knex.raw(`ALTER TABLE ?? SET (${parameters.join(', ')})`, [table]);
}

/** Rows that live for minutes: new ones need a vacuum as well, or index scans visit their pages. */
const SHORT_LIVED = 'autovacuum_vacuum_insert_scale_factor = 0.1';
/** Few rows that many requests update: room for the next version on the same page. */
const UPDATED = 'fillfactor = 50';

// The installation and its tenants.

/** @param {Knex} knex */
async function createTenants(knex) {
  // Secrets and facts of the installation, each under a name.
  await knex.schema.createTable('meta', (t) => {
    t.text('name').primary();
    texts(t, 'value');
  });
  // Running processes read these numbers once a second. A writer raises a number in its own transaction, so that numbers have the order
  // of the commits.
  await knex.schema.createTable('revisions', (t) => {
    t.text('scope').primary();
    counts(t, 'revision');
  });
  await knex('revisions').insert(['tenants', 'agents'].map((scope) => ({ scope, revision: 0 })));
  // Settings as JSON. `terms_mac` covers all purposes and policies together, so that a row that was removed is missed (ADR 0042).
  await knex.schema.createTable('tenants', (t) => {
    t.text('kid').primary();
    moments(t, 'created_at');
    counts(t, 'revision');
    texts(t, 'settings');
    optionalTexts(t, 'terms_mac');
  });
  // The root that other keys are derived from, the seed of the log, the shared key.
  await knex.schema.createTable('tenant_secrets', (t) => {
    ofTenant(t);
    texts(t, 'purpose', 'wrapped');
    t.primary(['kid', 'purpose']);
  });
}

/** @param {Knex} knex */
async function createKeys(knex) {
  // Generations of the key that bundles are sealed to: staged, published, retiring, destroyed. A destroyed one has no private key.
  await knex.schema.createTable('seal_keys', (t) => {
    ofTenant(t);
    integers(t, 'generation');
    texts(t, 'state', 'public_key');
    optionalTexts(t, 'wrapped_private');
    moments(t, 'created_at');
    optionalMoments(t, 'published_at', 'retires_at', 'destroyed_at');
    t.primary(['kid', 'generation']);
  });
  // Bundles a generation opened on a day: says when it can be destroyed.
  await knex.schema.createTable('key_traffic', (t) => {
    texts(t, 'kid');
    integers(t, 'generation');
    counts(t, 'day', 'bundles');
    moments(t, 'last_at');
    t.primary(['kid', 'generation', 'day']);
  });
  // Consent API keys of backends, as SHA-256. `last_used_on` is a date.
  await knex.schema.createTable('api_keys', (t) => {
    ofTenant(t);
    texts(t, 'id', 'scope', 'name');
    t.text('hash').notNullable().unique();
    moments(t, 'created_at');
    optionalMoments(t, 'revoked_at');
    optionalTexts(t, 'last_used_on');
    t.primary(['kid', 'id']);
  });
}

// The log: one RFC 6962 tree per tenant. Entries hold commitments; what opens them is in other tables and can be erased.

/** @param {Knex} knex */
async function createLog(knex) {
  // The row that appenders lock: size, roots of the right edge, the last entry, and until when hours are anchored: those rows are
  // deleted by retention.
  await knex.schema.createTable('ledger_heads', (t) => {
    t.text('kid').primary().references('kid').inTable('tenants').onDelete('CASCADE');
    texts(t, 'origin', 'vkey');
    counts(t, 'size');
    texts(t, 'frontier', 'head_hash');
    for (const mark of ['verdicts_sealed_to', 'audit_sealed_to'])
      t.bigInteger(mark).notNullable().defaultTo(0);
  });
  await store(knex, 'ledger_heads', UPDATED);
  // The leaves. An entry that no commitment binds to a person has a MAC.
  await knex.schema.createTable('ledger_entries', (t) => {
    texts(t, 'kid');
    counts(t, 'seq');
    texts(t, 'hash', 'entry');
    optionalTexts(t, 'mac');
    t.primary(['kid', 'seq']);
  });
  // Roots of complete blocks of 256, 65,536 … entries (level 1, 2 …).
  await knex.schema.createTable('ledger_blocks', (t) => {
    texts(t, 'kid');
    integers(t, 'level');
    counts(t, 'block');
    texts(t, 'hash');
    t.primary(['kid', 'level', 'block']);
  });
  // Signed checkpoints: the next one extends them. `cosignatures`: lines of witnesses (C2SP tlog-cosignature), empty for none.
  await knex.schema.createTable('checkpoints', (t) => {
    texts(t, 'kid');
    counts(t, 'size');
    moments(t, 'at');
    texts(t, 'note');
    t.text('cosignatures').notNullable().defaultTo('');
    t.primary(['kid', 'size']);
  });
  // Hours of decisions and of the audit log that are anchored: the root over `count` commitments, in the entry `seq`.
  for (const anchors of ['verdict_seals', 'audit_seals']) {
    await knex.schema.createTable(anchors, (t) => {
      texts(t, 'kid');
      moments(t, 'hour');
      counts(t, 'seq');
      integers(t, 'count');
      texts(t, 'root');
      t.primary(['kid', 'hour']);
    });
  }
  // The commitment of an erased decision at its place in an anchored hour, without an id.
  await knex.schema.createTable('erased_verdicts', (t) => {
    texts(t, 'kid');
    moments(t, 'hour');
    integers(t, 'position');
    texts(t, 'commitment');
    t.primary(['kid', 'hour', 'position']);
  });
}

/** @param {Knex} knex */
async function createAudit(knex) {
  // The audit log names actors and objects by keyed references: nobody is named once the tenant's key or the subject is gone.
  await knex.schema.createTable('audit_log', (t) => {
    t.bigIncrements('seq');
    texts(t, 'kid');
    moments(t, 'at');
    texts(t, 'role', 'actor', 'action');
    optionalTexts(t, 'object');
    texts(t, 'detail', 'salt', 'commitment');
    // 1: the act weakened a safeguard, and gpd did not write of it to staff yet.
    t.integer('unsent').notNullable().defaultTo(0);
    t.index(['kid', 'at']);
    t.index(['kid', 'object']);
    t.index(['kid', 'seq']);
    t.index(['kid', 'action', 'seq']);
    t.index(['kid', 'actor', 'seq']);
  });
  await knex.raw('CREATE INDEX audit_log_unsent ON audit_log (kid, seq) WHERE unsent = 1');
  // The register lists exports by their time.
  await knex.raw(
    "CREATE INDEX audit_log_exports ON audit_log (kid, at) WHERE action IN ('dsar.exported', 'dsar.staff-exported')",
  );
}

// Webhooks and agents.

/** @param {Knex} knex */
async function createWebhooks(knex) {
  // Targets of events. `allow_private`: the operator vouches for a target in the own network.
  await knex.schema.createTable('webhooks', (t) => {
    ofTenant(t);
    texts(t, 'id', 'url', 'events');
    t.boolean('allow_private').notNullable();
    texts(t, 'wrapped_secret');
    moments(t, 'created_at');
    t.primary(['kid', 'id']);
  });
  // Events that wait or failed, in one lane per webhook. An event names a decision or has a sealed payload. `leased_until` is in no
  // index: on PostgreSQL the new version of a taken row stays on its page.
  await knex.schema.createTable('webhook_outbox', (t) => {
    t.bigIncrements('seq');
    texts(t, 'kid', 'webhook', 'event');
    optionalTexts(t, 'request_id', 'principal', 'sealed');
    moments(t, 'created_at');
    texts(t, 'state');
    integers(t, 'attempts');
    moments(t, 'next_at');
    t.bigInteger('leased_until').notNullable().defaultTo(0);
    optionalTexts(t, 'failure');
    t.index(['kid', 'principal']);
  });
  const on = 'ON webhook_outbox (kid,';
  await knex.raw(`CREATE INDEX webhook_outbox_lane ${on} webhook, next_at, seq) WHERE state = 'waiting'`);
  await knex.raw(`CREATE INDEX webhook_outbox_failed ${on} webhook) WHERE state = 'failed'`);
  // Erasures and the retention find the messages of a request by this index.
  await knex.raw(`CREATE INDEX webhook_outbox_request ${on} request_id) WHERE request_id IS NOT NULL`);
  await store(knex, 'webhook_outbox', SHORT_LIVED, UPDATED);
}

/** Web Bot Auth (draft-meunier-web-bot-auth-architecture). @param {Knex} knex */
async function createAgents(knex) {
  // Key directories of declared agents. `pinned` keys were given by an operator and are never fetched; `listed` and `discovered` are.
  await knex.schema.createTable('agent_directories', (t) => {
    t.text('url').primary();
    texts(t, 'source', 'keys');
    optionalMoments(t, 'fetched_at', 'tried_at');
    optionalTexts(t, 'failure', 'card');
  });
  // Nonces of signatures that were seen. `bundle` is a hash of tenant and bundle: the same one may be sent again after a 503.
  await knex.schema.createTable('agent_nonces', (t) => {
    t.text('nonce').primary();
    texts(t, 'bundle');
    t.bigInteger('expires_at').notNullable().index();
  });
}

// Consent: the terms, what a person said last, and what opens the commitments of the log.

/** @param {Knex} knex */
async function createTerms(knex) {
  // Purposes of processing; `gpc`: how a Global Privacy Control signal changes each. `definition`: the entry that has these words; a
  // choice of before `material_since` was about other ones, and one of `opt_out_until` or before was under a stricter `gpc` (ADR 0072).
  await knex.schema.createTable('purposes', (t) => {
    ofTenant(t);
    texts(t, 'id', 'title', 'description', 'lawful_basis', 'gpc');
    integers(t, 'ttl_days');
    // False: the banner never asks for it.
    t.boolean('banner').notNullable().defaultTo(true);
    for (const name of ['definition', 'material_since', 'opt_out_until', 'ask_until'])
      t.bigInteger(name).nullable();
    t.primary(['kid', 'id']);
  });
  // Versions of the privacy policy. A material one asks people again who agreed to an earlier version.
  await knex.schema.createTable('consent_policies', (t) => {
    ofTenant(t);
    integers(t, 'version');
    texts(t, 'text', 'sha256');
    t.boolean('material').notNullable();
    moments(t, 'published_at');
    t.primary(['kid', 'version']);
  });
  // Texts that banners showed, with the entry of the log that says so.
  await knex.schema.createTable('banners', (t) => {
    ofTenant(t);
    counts(t, 'seq', 'revision');
    texts(t, 'texts_sha256', 'script_sha256', 'texts');
    moments(t, 'published_at');
    t.primary(['kid', 'seq']);
  });
}

/** @param {Knex} knex */
async function createConsent(knex) {
  // The key of a person's commitments; null: erased, and nothing of this person can be opened. `erased_at`: the tombstone. `gpc`: the
  // opt-out by Global Privacy Control, but for the purposes in `gpc_except` (JSON, null for none; contract-2 section 13). `account`: the
  // principal with which this one is joined, its reference for the account itself, null for none. `withheld`: purposes (JSON, null for none)
  // that a joined principal had refused when its record was erased; they stay refused until a grant (ADR 0094).
  await createKeyed(
    knex,
    `consent_principals (kid text NOT NULL, principal text NOT NULL, wrapped_key text, gpc boolean NOT NULL, gpc_except text,
      erased_at bigint, account text, withheld text, mac text, PRIMARY KEY (kid, principal))`,
  );
  await knex.raw(
    'CREATE INDEX consent_principals_account ON consent_principals (kid, account) WHERE account IS NOT NULL',
  );
  // The last choice per person and purpose, and the entry that says so: what a check reads. `over_gpc`: granted over a GPC signal.
  // `given`: person, agent or program, as the verdict of the visit says; `doubt_seq`: the entry `consent.doubted`. Null for others.
  // `definition`: the entry that defined the purpose in the words of the choice.
  await createKeyed(
    knex,
    `consent_state (kid text NOT NULL, principal text NOT NULL, purpose text NOT NULL, choice text NOT NULL,
      policy_version integer NOT NULL, expires_at bigint, at bigint NOT NULL, seq bigint NOT NULL, hash text NOT NULL,
      over_gpc boolean, given text, doubt_seq bigint, definition bigint, mac text, PRIMARY KEY (kid, principal, purpose))`,
  );
  await knex.raw(
    'CREATE INDEX consent_state_doubted ON consent_state (kid, seq) WHERE doubt_seq IS NOT NULL',
  );
  // An opening has the values behind the commitment of an entry. `principal_id` is stored, encrypted, for a doubted grant alone: the
  // entry that clears the doubt commits to the id as well.
  await knex.schema.createTable('consent_openings', (t) => {
    texts(t, 'kid');
    counts(t, 'seq');
    texts(t, 'principal', 'purpose', 'choice');
    moments(t, 'at');
    texts(t, 'salt', 'detail');
    optionalTexts(t, 'principal_id');
    t.primary(['kid', 'seq']);
    t.index(['kid', 'principal', 'seq']);
  });
  await knex.raw(
    "CREATE INDEX consent_openings_doubted ON consent_openings (kid, seq) WHERE choice = 'doubted'",
  );
  // Sessions of persons, by SHA-256 of the token, each ended by the API key that opened it.
  await knex.schema.createTable('principal_sessions', (t) => {
    t.text('hash').primary();
    texts(t, 'kid', 'principal', 'wrapped_principal_id', 'key_id');
    t.bigInteger('expires_at').notNullable().index();
  });
  // Answers of writes with an Idempotency-Key. `key` is a MAC; `caller` is empty, or `erased` once the person was erased.
  await knex.schema.createTable('idempotency_keys', (t) => {
    texts(t, 'kid', 'caller', 'key', 'body_hash', 'principal', 'answer');
    t.bigInteger('expires_at').notNullable().index();
    t.primary(['kid', 'caller', 'key']);
    t.index(['kid', 'principal']);
  });
}

// Visits: what an accepted bundle leaves.

/** @param {Knex} knex */
async function createIngest(knex) {
  // Bundles that were accepted, so that none is accepted twice.
  await createKeyed(
    knex,
    `nonces (kid text NOT NULL, nonce text NOT NULL, dated_at bigint NOT NULL, PRIMARY KEY (kid, nonce))`,
  );
  await knex.raw('CREATE INDEX nonces_dated_at ON nonces (dated_at)');
  await store(knex, 'nonces', SHORT_LIVED);
  // Devices: when each was seen, and how often.
  await createKeyed(
    knex,
    `sightings (kid text NOT NULL, durable text NOT NULL, first_at bigint NOT NULL, last_at bigint NOT NULL,
      seen bigint NOT NULL, PRIMARY KEY (kid, durable))`,
  );
  // The device behind a visitorId. `ends_at`: an epoch's number tells its end only while GPD_EPOCH_DAYS stays as it was.
  await createKeyed(
    knex,
    `visitor_index (kid text NOT NULL, visitor_id text NOT NULL, durable text NOT NULL, epoch integer NOT NULL,
      ends_at bigint NOT NULL, PRIMARY KEY (kid, visitor_id))`,
  );
  // The visitor ids of a device, from the index alone: without the epoch in it SQLite reads the tenant's whole table.
  await knex.raw('CREATE INDEX visitor_index_device ON visitor_index (kid, durable, epoch)');
  // Passkeys that tell a device apart from those that look the same; `durable` is the keyed hash of the credential's id.
  await knex.schema.createTable('credentials', (t) => {
    texts(t, 'kid', 'durable', 'public_key');
    counts(t, 'counter');
    t.boolean('device_bound').notNullable();
    moments(t, 'created_at', 'last_at');
    t.primary(['kid', 'durable']);
  });
  // Devices that a review found to be used by a human.
  await createKeyed(
    knex,
    `overrides (kid text NOT NULL, durable text NOT NULL, request_id text, created_at bigint NOT NULL,
      PRIMARY KEY (kid, durable))`,
  );
}

/** @param {Knex} knex */
async function createDecisions(knex) {
  // The whole verdict as JSON; the commitment is over exactly these bytes.
  await createKeyed(
    knex,
    `decisions (kid text NOT NULL, request_id text NOT NULL, decided_at bigint NOT NULL, class text NOT NULL, durable text,
      verdict text NOT NULL, salt text NOT NULL, commitment text NOT NULL, PRIMARY KEY (kid, request_id))`,
  );
  // A device's decisions, newest first, as one range of one index.
  await knex.raw('CREATE INDEX decisions_device ON decisions (kid, durable, request_id)');
  await knex.raw('CREATE INDEX decisions_decided_at ON decisions (kid, decided_at)');
  // The console lists a class by time. People are most visits: their list is read from the index above, and their rows cost no entry here.
  await knex.raw("CREATE INDEX decisions_class ON decisions (kid, class, decided_at) WHERE class <> 'human'");
  // A later decision of the same browser session supersedes an earlier one (ADR 0054).
  await knex.schema.createTable('decision_updates', (t) => {
    texts(t, 'kid', 'earlier', 'request_id');
    t.primary(['kid', 'earlier']);
    t.unique(['kid', 'request_id']);
    ofDecision(t, 'earlier');
    ofDecision(t, 'request_id');
  });
  // Outcomes that the tenant's backend reported. A separate table: a report must not leave an older copy of the verdict on PostgreSQL.
  await knex.schema.createTable('decision_outcomes', (t) => {
    texts(t, 'kid', 'request_id', 'outcome');
    moments(t, 'at');
    t.primary(['kid', 'request_id']);
    ofDecision(t, 'request_id');
  });
  // The rarity of each signal of a request, for transparency.
  await knex.schema.createTable('signal_summaries', (t) => {
    texts(t, 'kid', 'request_id');
    t.bigInteger('expires_at').notNullable().index();
    texts(t, 'summary');
    t.primary(['kid', 'request_id']);
  });
  // A link has the principal of a request, where a person signed in.
  await knex.schema.createTable('links', (t) => {
    texts(t, 'kid', 'request_id', 'principal');
    moments(t, 'linked_at');
    t.primary(['kid', 'request_id']);
    t.index(['kid', 'principal']);
  });
}

/**
 * These tables count how many networks share an id. The day comes first in the keys: a day that is over is one range at the start of
 * the table, and needs no index.
 * @param {Knex} knex
 */
async function createNetworks(knex) {
  // Client networks of a device, as salted hashes that live one day.
  await createKeyed(
    knex,
    `network_marks (day integer NOT NULL, kid text NOT NULL, durable text NOT NULL, network text NOT NULL,
      PRIMARY KEY (day, kid, durable, network))`,
  );
  await store(knex, 'network_marks', SHORT_LIVED);
  // The number of networks of a device on a day.
  await createKeyed(
    knex,
    `network_days (day integer NOT NULL, kid text NOT NULL, durable text NOT NULL, networks integer NOT NULL,
      PRIMARY KEY (day, kid, durable))`,
  );
  // The sum of a tenant's day, in several shards, so that nodes do not queue for one row.
  await knex.schema.createTable('network_totals', (t) => {
    texts(t, 'kid');
    integers(t, 'day', 'shard');
    counts(t, 'pairs');
    t.primary(['kid', 'day', 'shard']);
  });
  await store(knex, 'network_totals', UPDATED);
}

/** @param {Knex} knex */
async function createPolicies(knex) {
  // A tenant's own weights of rules, `live` or in `shadow`.
  await knex.schema.createTable('tenant_policies', (t) => {
    ofTenant(t);
    texts(t, 'mode', 'policy');
    t.primary(['kid', 'mode']);
  });
  // Counts of decisions that the shadow policy would have made otherwise.
  await knex.schema.createTable('shadow_counts', (t) => {
    texts(t, 'kid');
    integers(t, 'day');
    texts(t, 'policy_version', 'live_class', 'shadow_class');
    counts(t, 'verdicts');
    t.primary(['kid', 'day', 'policy_version', 'live_class', 'shadow_class']);
  });
  // Counts of devices per value, by a keyed hash of the value.
  await knex.schema.createTable('population', (t) => {
    texts(t, 'kid', 'signal', 'value');
    counts(t, 'devices');
    t.primary(['kid', 'signal', 'value']);
  });
}

// Rights.

/** @param {Table} t */
function contestColumns(t) {
  texts(t, 'kid', 'contest_id', 'request_id');
  // An objection to a decision (`contest`), or a complaint about how data are handled (`complaint`).
  t.text('kind').notNullable().defaultTo('contest');
  optionalTexts(t, 'durable');
  texts(t, 'filed_by');
  // `due_at` is the date that counts; an extension keeps the first one in `extended_from`.
  moments(t, 'filed_at', 'due_at');
  optionalMoments(t, 'extended_from');
  // 0: nothing was told, 1: due soon, 2: overdue. Each is told once, by whichever node finds it.
  t.integer('due_notice').notNullable().defaultTo(0);
  texts(t, 'status');
  integers(t, 'version');
  // The class that is contested, so that the queue filters without opening verdicts.
  texts(t, 'class');
  // Encrypted texts of the person and the reviewers, and the e-mail address.
  optionalTexts(t, 'sealed');
  optionalMoments(t, 'asked_at', 'answered_at');
  // The last time in which the clock of a request stood still (rights.profile uk); it stands still while `paused_to` is null.
  optionalMoments(t, 'paused_from', 'paused_to');
  // Only of a complaint.
  optionalMoments(t, 'acknowledged_at');
  // A contest without an account: keyed hash of its case key, and the network that filed it, hashed under a key of that day.
  t.text('case_hash').nullable().unique();
  optionalTexts(t, 'case_network');
  // `…_label` is the person's name in the console.
  optionalTexts(t, 'outcome', 'resolved_role', 'resolved_by', 'resolved_label');
  optionalMoments(t, 'resolved_at');
  optionalTexts(t, 'claimed_by', 'claimed_label');
  optionalMoments(t, 'claimed_until');
  // review.fourEyes: what one reviewer proposed and another has to confirm.
  optionalTexts(t, 'proposed_outcome', 'proposed_by', 'proposed_label');
  optionalMoments(t, 'proposed_at');
}

/** @param {Knex} knex */
async function createContests(knex) {
  // Objections of persons to decisions, until a human resolved them.
  await knex.schema.createTable('contests', (t) => {
    contestColumns(t);
    t.primary(['contest_id']);
    t.unique(['kid', 'request_id', 'kind']);
    t.index(['kid', 'durable']);
    t.index(['kid', 'filed_at']);
    t.index(['kid', 'case_network']);
    t.index(['kid', 'status', 'due_at', 'contest_id']);
    t.index(['kid', 'status', 'class', 'due_at', 'contest_id']);
    t.index(['kid', 'status', 'resolved_at', 'contest_id']);
    t.index(['kid', 'status', 'claimed_until']);
    t.index(['kid', 'status', 'filed_at', 'contest_id']);
  });
  // Few cases have a question or a proposal, and the queue counts them on each page.
  for (const name of ['asked_at', 'proposed_by'])
    await knex.raw(
      `CREATE INDEX contests_${name} ON contests (kid, status, due_at, contest_id) WHERE ${name} IS NOT NULL`,
    );
  // Counts of reviews that upheld or overturned a rule, and of reports that confirmed or contradicted it.
  await knex.schema.createTable('rule_reviews', (t) => {
    texts(t, 'kid', 'rule');
    counts(t, 'upheld', 'overturned');
    for (const name of ['confirmed', 'mistaken']) t.bigInteger(name).notNullable().defaultTo(0);
    t.primary(['kid', 'rule']);
  });
}

/** @param {Knex} knex */
async function createErasures(knex) {
  // Receipts. `subject` and `refs` are keyed references, `scopes` says what was deleted and what was kept. `state`: open (its line is not
  // in erasures.log yet), logged (it is), done (no server has anything left to do). `files_clean_at`: when it was complete, as the files of
  // the database held none of its bytes any more; of one that is done, null says that it waits for `gpd erase scrub`.
  await knex.schema.createTable('erasures', (t) => {
    t.text('receipt_id').primary();
    texts(t, 'kid', 'subject', 'requested_by');
    moments(t, 'erased_at');
    texts(t, 'scopes', 'refs', 'state');
    optionalMoments(t, 'files_clean_at');
    t.boolean('noticed').notNullable().defaultTo(false);
    t.index(['kid', 'erased_at']);
    t.index(['state', 'files_clean_at']);
  });
  // A repeated request of a person finds the receipt of the first.
  await knex.raw('CREATE INDEX erasures_subject ON erasures (kid, subject)');
  // The references of a receipt, each with its receipt: durable, request, principal; held: a device of which a hold kept rows; left: a request with the device that stays.
  await createKeyed(
    knex,
    `erasure_refs (kid text NOT NULL, ref text NOT NULL, kind text NOT NULL, receipt text NOT NULL,
      PRIMARY KEY (kid, kind, ref, receipt))`,
  );
  await knex.raw('CREATE INDEX erasure_refs_receipt ON erasure_refs (receipt, kind)');
  // Requests that a large erasure still has to delete: those of a device up to this one, or one request (the device is empty then).
  await createKeyed(
    knex,
    `erasing (receipt_id text NOT NULL, kid text NOT NULL, durable text NOT NULL, request_id text NOT NULL,
      PRIMARY KEY (receipt_id, durable, request_id))`,
  );
  await knex.raw('CREATE INDEX erasing_kid ON erasing (kid)');
  // Legal holds, one a device.
  await knex.schema.createTable('legal_holds', (t) => {
    texts(t, 'kid', 'durable', 'basis');
    moments(t, 'created_at');
    t.primary(['kid', 'durable']);
  });
}

// The console and the operation.

/** @param {Knex} knex */
async function createConsole(knex) {
  // Sessions of staff, by SHA-256 of the cookie. `provider` has SHA-256 of issuer and client, or null after a passkey. `label` is what colleagues are told; `id_token`, encrypted, is the hint by which the
  // identity provider signs the person out (RP-Initiated Logout 1.0 section 2).
  await knex.schema.createTable('console_sessions', (t) => {
    t.text('hash').primary();
    ofTenant(t);
    texts(t, 'actor', 'label', 'roles', 'csrf');
    optionalTexts(t, 'provider', 'id_token');
    moments(t, 'created_at', 'seen_at');
    t.bigInteger('expires_at').notNullable().index();
    t.index(['kid', 'seen_at']);
  });
  // Staff who sign in with a passkey. Of an invitation and of the credential's id there is a SHA-256 alone; one who was removed stays
  // without them, so that a restore of an older backup removes them again.
  await knex.schema.createTable('staff', (t) => {
    ofTenant(t);
    texts(t, 'id', 'name', 'role');
    t.text('invite_hash').nullable().unique();
    t.text('credential').nullable().unique();
    optionalTexts(t, 'public_key');
    counts(t, 'counter');
    moments(t, 'created_at', 'invite_until');
    optionalMoments(t, 'joined_at', 'removed_at');
    t.primary(['kid', 'id']);
  });
  await knex.raw('CREATE UNIQUE INDEX staff_name ON staff (name) WHERE removed_at IS NULL');
  // Texts that staff wrote and did not send, encrypted. They are deleted with their contest, so that an erasure takes them along.
  await knex.schema.createTable('console_drafts', (t) => {
    texts(t, 'kid', 'actor');
    const contest = t.text('contest_id').notNullable();
    contest.references('contest_id').inTable('contests').onDelete('CASCADE').index();
    texts(t, 'kind');
    optionalTexts(t, 'outcome');
    texts(t, 'text');
    t.bigInteger('at').notNullable().index();
    t.primary(['kid', 'actor', 'contest_id', 'kind']);
  });
}

/** @param {Knex} knex */
async function createTallies(knex) {
  // Counts by hour: a page about a million verdicts reads a few hundred rows.
  await knex.schema.createTable('tallies', (t) => {
    texts(t, 'kid', 'kind');
    moments(t, 'hour');
    texts(t, 'name');
    counts(t, 'n');
    t.primary(['kid', 'kind', 'hour', 'name']);
  });
  // The mark up to which each kind is counted: a time for verdicts, a place in the log for consent.
  await knex.schema.createTable('tally_marks', (t) => {
    texts(t, 'kid', 'kind');
    counts(t, 'upto');
    t.primary(['kid', 'kind']);
  });
}

/** @param {Knex} knex */
async function createOperations(knex) {
  // Rate limits that several nodes share: a keyed hash of the client under a salt of the day, kept for two windows. Lost by a crash of
  // PostgreSQL: counting waits neither for its disk nor for a standby.
  await knex.schema.createTable('rate_counters', (t) => {
    texts(t, 'bucket', 'client');
    t.bigInteger('window_ends').notNullable().index();
    counts(t, 'hits');
    t.primary(['bucket', 'client', 'window_ends']);
  });
  if (!isSqlite(knex)) await knex.raw('ALTER TABLE rate_counters SET UNLOGGED');
  await store(knex, 'rate_counters', SHORT_LIVED, UPDATED);
  // Jobs of the housekeeping that fail, for gpd doctor. An empty kid: the job is not about one tenant. `reason`: name and code of the
  // error, because its message may quote what was bound.
  await knex.schema.createTable('job_failures', (t) => {
    texts(t, 'kid', 'job');
    moments(t, 'since');
    texts(t, 'reason');
    t.primary(['kid', 'job']);
  });
}

/** @param {Knex} knex */
export async function up(knex) {
  await createTenants(knex);
  await createKeys(knex);
  await createLog(knex);
  await createAudit(knex);
  await createWebhooks(knex);
  await createAgents(knex);
  await createTerms(knex);
  await createConsent(knex);
  await createIngest(knex);
  await createDecisions(knex);
  await createNetworks(knex);
  await createPolicies(knex);
  await createContests(knex);
  await createErasures(knex);
  await createConsole(knex);
  await createTallies(knex);
  await createOperations(knex);
}
