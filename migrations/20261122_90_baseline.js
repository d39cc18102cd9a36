// The schema of gpd 0.1.0, room by room. Later migrations add to it.

/** @typedef {import('knex').Knex} Knex @typedef {import('knex').Knex.CreateTableBuilder} Table */

/** @param {Table} t @param {string[]} names */
function texts(t, ...names) {
  for (const name of names) t.text(name).notNullable();
}

/** Moments (milliseconds) and counts. @param {Table} t @param {string[]} names */
function bigints(t, ...names) {
  for (const name of names) t.bigInteger(name).notNullable();
}

/** Its rows go with their tenant. @param {Table} t */
const ofTenant = (t) => t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');

/**
 * Small rows under random keys: on SQLite the table is the index of its key (WITHOUT ROWID), so that a row is written once and
 * found by one descent.
 * @param {Knex} knex @param {string} body
 */
async function createKeyed(knex, body) {
  const sqlite = knex.client.dialect === 'sqlite3';
  await knex.raw(`CREATE TABLE ${body}${sqlite ? ' WITHOUT ROWID' : ''}`);
}

/** @param {Knex} knex */
async function createTenants(knex) {
  await knex.schema.createTable('meta', (t) => {
    t.text('name').primary();
    texts(t, 'value');
  });
  // One row a scope; a writer bumps it in its own transaction, so revisions are ordered as commits are.
  await knex.schema.createTable('revisions', (t) => {
    t.text('scope').primary();
    bigints(t, 'revision');
  });
  await knex('revisions').insert(['tenants', 'agents'].map((scope) => ({ scope, revision: 0 })));
  await knex.schema.createTable('tenants', (t) => {
    t.text('kid').primary();
    bigints(t, 'created_at');
    t.bigInteger('revision').notNullable().index();
    texts(t, 'settings');
  });
  await knex.schema.createTable('tenant_secrets', (t) => {
    ofTenant(t);
    texts(t, 'purpose', 'wrapped');
    t.primary(['kid', 'purpose']);
  });
}

/** @param {Knex} knex */
async function createKeys(knex) {
  // Staged, published, retiring, destroyed: a destroyed generation has no private key any more.
  await knex.schema.createTable('seal_keys', (t) => {
    ofTenant(t);
    t.integer('generation').notNullable();
    texts(t, 'state', 'public_key');
    t.text('wrapped_private').nullable();
    bigints(t, 'created_at');
    for (const moment of ['published_at', 'retires_at', 'destroyed_at']) t.bigInteger(moment).nullable();
    t.primary(['kid', 'generation']);
  });
  await knex.schema.createTable('key_traffic', (t) => {
    texts(t, 'kid');
    t.integer('generation').notNullable();
    bigints(t, 'day', 'bundles', 'last_at');
    t.primary(['kid', 'generation', 'day']);
  });
  // Only the SHA-256 of a consent API key is kept.
  await knex.schema.createTable('api_keys', (t) => {
    ofTenant(t);
    texts(t, 'id', 'scope', 'name');
    t.text('hash').notNullable().unique();
    bigints(t, 'created_at');
    t.bigInteger('revoked_at').nullable();
    t.text('last_used_on').nullable();
    t.primary(['kid', 'id']);
  });
}

/**
 * One RFC 6962 Merkle log a tenant. Entries hold commitments; what opens them lies apart and can be erased.
 * @param {Knex} knex
 */
async function createLog(knex) {
  // The row that appenders lock: size, roots of the right edge, the last entry, the last signed checkpoint.
  await knex.schema.createTable('ledger_heads', (t) => {
    t.text('kid').primary().references('kid').inTable('tenants').onDelete('CASCADE');
    texts(t, 'origin', 'vkey');
    bigints(t, 'size');
    texts(t, 'frontier', 'head_hash');
    t.text('checkpoint').nullable();
    bigints(t, 'checkpoint_size', 'checkpoint_at');
    // Up to where the hours are sealed: the seals themselves are deleted by retention.
    for (const mark of ['verdicts_sealed_to', 'audit_sealed_to'])
      t.bigInteger(mark).notNullable().defaultTo(0);
  });
  await knex.schema.createTable('ledger_entries', (t) => {
    texts(t, 'kid');
    bigints(t, 'seq');
    texts(t, 'hash', 'entry');
    t.primary(['kid', 'seq']);
  });
  // Roots of complete blocks of 256, 65,536 … entries (level 1, 2 …).
  await knex.schema.createTable('ledger_blocks', (t) => {
    texts(t, 'kid');
    t.integer('level').notNullable();
    bigints(t, 'block');
    texts(t, 'hash');
    t.primary(['kid', 'level', 'block']);
  });
  // Hours that were sealed into the log.
  for (const seals of ['verdict_seals', 'audit_seals']) {
    await knex.schema.createTable(seals, (t) => {
      texts(t, 'kid');
      bigints(t, 'hour', 'seq');
      t.integer('count').notNullable();
      texts(t, 'root');
      t.primary(['kid', 'hour']);
    });
  }
  // An erased verdict of a sealed hour leaves its commitment at its place, and no id.
  await knex.schema.createTable('erased_verdicts', (t) => {
    texts(t, 'kid');
    bigints(t, 'hour');
    t.integer('position').notNullable();
    texts(t, 'commitment');
    t.primary(['kid', 'hour', 'position']);
  });
}

/** Keyed references only: nothing names a person once the tenant's key or the subject is gone. @param {Knex} knex */
async function createAudit(knex) {
  await knex.schema.createTable('audit_log', (t) => {
    t.bigIncrements('seq');
    texts(t, 'kid');
    bigints(t, 'at');
    texts(t, 'role', 'actor', 'action');
    t.text('object').nullable();
    texts(t, 'detail', 'salt', 'commitment');
    t.index(['kid', 'at']);
    t.index(['kid', 'object']);
    t.index(['kid', 'seq']);
    t.index(['kid', 'action', 'seq']);
    t.index(['kid', 'actor', 'seq']);
  });
}

/** A waiting event names a decision or holds a sealed payload: no id of a person in the clear. @param {Knex} knex */
async function createWebhooks(knex) {
  await knex.schema.createTable('webhooks', (t) => {
    ofTenant(t);
    texts(t, 'id', 'url', 'events');
    t.boolean('allow_private').notNullable();
    texts(t, 'wrapped_secret');
    bigints(t, 'created_at');
    t.primary(['kid', 'id']);
  });
  await knex.schema.createTable('webhook_outbox', (t) => {
    t.bigIncrements('seq');
    texts(t, 'kid', 'webhook', 'event');
    for (const name of ['request_id', 'principal', 'sealed']) t.text(name).nullable();
    bigints(t, 'created_at');
    texts(t, 'state');
    t.integer('attempts').notNullable();
    bigints(t, 'next_at');
    t.text('failure').nullable();
    t.index(['state', 'next_at']);
    t.index(['kid', 'webhook', 'seq']);
    t.index(['kid', 'principal']);
  });
  // An erasure and the retention look for the messages of a request, and must not read everybody's to find them.
  await knex.raw(
    'CREATE INDEX webhook_outbox_request ON webhook_outbox (kid, request_id) WHERE request_id IS NOT NULL',
  );
}

/** Web Bot Auth: key directories of declared agents, and the signature nonces that were seen. @param {Knex} knex */
async function createAgents(knex) {
  await knex.schema.createTable('agent_directories', (t) => {
    t.text('url').primary();
    // `pinned` keys were given by an operator and are never fetched; `listed` and `discovered` are.
    texts(t, 'source', 'keys');
    for (const moment of ['fetched_at', 'tried_at']) t.bigInteger(moment).nullable();
    t.text('failure').nullable();
    bigints(t, 'created_at');
  });
  await knex.schema.createTable('agent_nonces', (t) => {
    t.text('nonce').primary();
    // A hash of the tenant and the bundle's own nonce: the same bundle may be sent again after a 503.
    texts(t, 'bundle');
    t.bigInteger('expires_at').notNullable().index();
  });
}

/** Who (by keyed reference) said what last, and what opens the log's commitments. @param {Knex} knex */
async function createConsent(knex) {
  // Purposes of processing, with what a Global Privacy Control signal does to each.
  await knex.schema.createTable('purposes', (t) => {
    ofTenant(t);
    texts(t, 'id', 'title', 'description', 'lawful_basis', 'gpc');
    t.integer('ttl_days').notNullable();
    t.primary(['kid', 'id']);
  });
  await knex.schema.createTable('consent_policies', (t) => {
    ofTenant(t);
    t.integer('version').notNullable();
    texts(t, 'text', 'sha256');
    t.boolean('material').notNullable();
    bigints(t, 'published_at');
    t.primary(['kid', 'version']);
  });
  // wrapped_key null: erased, and nothing of this principal opens any more. erased_at: the tombstone.
  await createKeyed(
    knex,
    `consent_principals (kid text NOT NULL, principal text NOT NULL, wrapped_key text, gpc boolean NOT NULL,
      erased_at bigint, PRIMARY KEY (kid, principal))`,
  );
  await createKeyed(
    knex,
    `consent_state (kid text NOT NULL, principal text NOT NULL, purpose text NOT NULL, choice text NOT NULL,
      policy_version integer NOT NULL, expires_at bigint, at bigint NOT NULL, seq bigint NOT NULL, hash text NOT NULL,
      PRIMARY KEY (kid, principal, purpose))`,
  );
  await knex.schema.createTable('consent_openings', (t) => {
    texts(t, 'kid');
    bigints(t, 'seq');
    texts(t, 'principal', 'purpose', 'choice');
    bigints(t, 'at');
    texts(t, 'salt', 'detail');
    t.primary(['kid', 'seq']);
    t.index(['kid', 'principal', 'seq']);
  });
}

/** @param {Knex} knex */
async function createConsentLane(knex) {
  await knex.schema.createTable('principal_sessions', (t) => {
    t.text('hash').primary();
    texts(t, 'kid', 'principal', 'wrapped_principal_id');
    t.bigInteger('expires_at').notNullable().index();
  });
  await knex.schema.createTable('idempotency_keys', (t) => {
    texts(t, 'kid', 'caller', 'key', 'body_hash', 'principal', 'answer');
    t.bigInteger('expires_at').notNullable().index();
    t.primary(['kid', 'caller', 'key']);
    t.index(['kid', 'principal']);
  });
  // What consent banners showed: the texts as they were, and the entry of the log that says so.
  await knex.schema.createTable('banners', (t) => {
    ofTenant(t);
    bigints(t, 'seq', 'revision');
    texts(t, 'texts_sha256', 'script_sha256', 'texts');
    bigints(t, 'published_at');
    t.primary(['kid', 'seq']);
  });
}

/** What an accepted bundle leaves: nonce, sighting, index entry, decision. No raw signal. @param {Knex} knex */
async function createIngest(knex) {
  await createKeyed(
    knex,
    `nonces (kid text NOT NULL, nonce text NOT NULL, expires_at bigint NOT NULL, PRIMARY KEY (kid, nonce))`,
  );
  await knex.raw('CREATE INDEX nonces_expires_at ON nonces (expires_at)');
  await createKeyed(
    knex,
    `sightings (kid text NOT NULL, durable text NOT NULL, first_at bigint NOT NULL, last_at bigint NOT NULL,
      seen bigint NOT NULL, epoch integer NOT NULL, PRIMARY KEY (kid, durable))`,
  );
  // ends_at: an epoch's number tells its end only as long as GPD_EPOCH_DAYS stays what it was.
  await createKeyed(
    knex,
    `visitor_index (kid text NOT NULL, visitor_id text NOT NULL, durable text NOT NULL, epoch integer NOT NULL,
      ends_at bigint NOT NULL, PRIMARY KEY (kid, visitor_id))`,
  );
  // The visitor ids of a device, from the index alone: without the epoch in it SQLite reads the tenant's whole table.
  await knex.raw('CREATE INDEX visitor_index_device ON visitor_index (kid, durable, epoch)');
  await createKeyed(
    knex,
    `overrides (kid text NOT NULL, durable text NOT NULL, request_id text, created_at bigint NOT NULL,
      PRIMARY KEY (kid, durable))`,
  );
  await knex.schema.createTable('decisions', (t) => {
    texts(t, 'kid', 'request_id');
    bigints(t, 'decided_at');
    texts(t, 'class');
    t.text('durable').nullable();
    // The whole verdict as JSON; the commitment is over exactly these bytes.
    texts(t, 'verdict', 'salt', 'commitment');
    t.primary(['kid', 'request_id']);
    // A subject's decisions, newest first, as one range of one index.
    t.index(['kid', 'durable', 'request_id']);
    t.index(['kid', 'decided_at']);
  });
  await knex.schema.createTable('signal_summaries', (t) => {
    texts(t, 'kid', 'request_id');
    t.bigInteger('expires_at').notNullable().index();
    texts(t, 'summary');
    t.primary(['kid', 'request_id']);
  });
}

/**
 * Who shares an id: client networks of a device, as salted hashes that live one day, and counts that outlive them. The day comes
 * first in the keys: what is over is one range at the start of the table, and needs no index of its own.
 * @param {Knex} knex
 */
async function createNetworks(knex) {
  await createKeyed(
    knex,
    `network_marks (day integer NOT NULL, kid text NOT NULL, durable text NOT NULL, network text NOT NULL,
      PRIMARY KEY (day, kid, durable, network))`,
  );
  await createKeyed(
    knex,
    `network_days (day integer NOT NULL, kid text NOT NULL, durable text NOT NULL, networks integer NOT NULL,
      PRIMARY KEY (day, kid, durable))`,
  );
  // Several shards a tenant and day, so that nodes do not queue for one row.
  await knex.schema.createTable('network_totals', (t) => {
    texts(t, 'kid');
    for (const name of ['day', 'shard']) t.integer(name).notNullable();
    bigints(t, 'pairs');
    t.primary(['kid', 'day', 'shard']);
  });
}

/** A tenant's own weights, live or in shadow. @param {Knex} knex */
async function createPolicies(knex) {
  await knex.schema.createTable('tenant_policies', (t) => {
    ofTenant(t);
    texts(t, 'mode', 'policy');
    bigints(t, 'created_at');
    t.primary(['kid', 'mode']);
  });
  // How often the shadow would have decided otherwise.
  await knex.schema.createTable('shadow_counts', (t) => {
    texts(t, 'kid');
    t.integer('day').notNullable();
    texts(t, 'policy_version', 'live_class', 'shadow_class');
    bigints(t, 'verdicts');
    t.primary(['kid', 'day', 'policy_version', 'live_class', 'shadow_class']);
  });
  // How many devices had a value, by keyed hash of it.
  await knex.schema.createTable('population', (t) => {
    texts(t, 'kid', 'signal', 'value');
    bigints(t, 'devices');
    t.primary(['kid', 'signal', 'value']);
  });
}

/** @param {Knex} knex */
async function createContests(knex) {
  await knex.schema.createTable('contests', (t) => {
    texts(t, 'kid', 'contest_id', 'request_id');
    t.text('durable').nullable();
    texts(t, 'filed_by');
    bigints(t, 'filed_at', 'due_at');
    texts(t, 'status');
    t.integer('version').notNullable();
    // The class that is contested, so that the queue filters without opening verdicts.
    texts(t, 'class');
    // What the person and the reviewers wrote, encrypted under the tenant's key.
    t.text('sealed').nullable();
    t.bigInteger('asked_at').nullable();
    t.text('outcome').nullable();
    t.bigInteger('resolved_at').nullable();
    // `by` is a keyed reference; `label` is the person's name in the console, as a claim has it.
    for (const name of ['role', 'by', 'label']) t.text(`resolved_${name}`).nullable();
    for (const name of ['by', 'label']) t.text(`claimed_${name}`).nullable();
    t.bigInteger('claimed_until').nullable();
    // review.fourEyes: what one reviewer proposed and another has to confirm.
    for (const name of ['outcome', 'by', 'label']) t.text(`proposed_${name}`).nullable();
    t.bigInteger('proposed_at').nullable();
    t.primary(['contest_id']);
    t.unique(['kid', 'request_id']);
    t.index(['kid', 'durable']);
    t.index(['kid', 'status', 'due_at', 'contest_id']);
    t.index(['kid', 'status', 'class', 'due_at', 'contest_id']);
    t.index(['kid', 'status', 'resolved_at', 'contest_id']);
    t.index(['kid', 'status', 'claimed_until']);
  });
  // Whose request it is, where a person signed in.
  await knex.schema.createTable('links', (t) => {
    texts(t, 'kid', 'request_id', 'principal');
    bigints(t, 'linked_at');
    t.primary(['kid', 'request_id']);
    t.index(['kid', 'principal']);
  });
}

/** @param {Knex} knex */
async function createErasures(knex) {
  await knex.schema.createTable('erasures', (t) => {
    t.text('receipt_id').primary();
    texts(t, 'kid', 'subject', 'requested_by');
    bigints(t, 'erased_at');
    // Keyed references for the tombstone outside the database, and what the erasure keeps.
    texts(t, 'scopes', 'refs');
    // rows: deleted, still in the write-ahead log; logged: the tombstone is on disk; done.
    texts(t, 'step');
    t.index(['kid', 'erased_at']);
    t.index(['step']);
  });
  // Requests whose rows a large erasure deletes in steps. A row hides its request once its receipt is in `erasures`; until
  // then it is only staged. `held`: the scopes that legal holds on the device kept when the request was marked.
  await createKeyed(
    knex,
    `erasing (receipt_id text NOT NULL, kid text NOT NULL, request_id text NOT NULL, durable text, held text,
      staged_at bigint NOT NULL, PRIMARY KEY (receipt_id, request_id))`,
  );
  await knex.raw('CREATE INDEX erasing_request ON erasing (kid, request_id)');
  await knex.schema.createTable('legal_holds', (t) => {
    texts(t, 'kid', 'durable', 'scope', 'basis');
    bigints(t, 'created_at');
    // An erasure met this hold and runs when it is released.
    t.text('requested_by').nullable();
    t.primary(['kid', 'durable', 'scope']);
  });
  // Erasures that a legal hold made wait: of a device, or of single requests of it (empty: the whole device).
  await knex.schema.createTable('held_erasures', (t) => {
    texts(t, 'kid', 'durable', 'request_id', 'requested_by');
    // Since when nothing keeps it waiting: a release, whose erasure has not run yet.
    t.bigInteger('due_at').nullable().index();
    t.primary(['kid', 'durable', 'request_id']);
  });
}

/** @param {Knex} knex */
async function createConsole(knex) {
  await knex.schema.createTable('console_sessions', (t) => {
    // SHA-256 of the cookie's value.
    t.text('hash').primary();
    ofTenant(t);
    // Keyed reference of the person; the label is what colleagues are told.
    texts(t, 'actor', 'label', 'roles', 'csrf');
    // Sealed: the hint by which the identity provider signs the person out (RP-Initiated Logout 1.0 section 2).
    t.text('id_token').nullable();
    bigints(t, 'created_at', 'seen_at');
    t.bigInteger('expires_at').notNullable().index();
    t.index(['kid', 'seen_at']);
  });
  await knex.schema.createTable('console_drafts', (t) => {
    texts(t, 'kid', 'actor');
    // Goes with its contest: an erasure takes it along.
    const contest = t.text('contest_id').notNullable();
    contest.references('contest_id').inTable('contests').onDelete('CASCADE').index();
    texts(t, 'kind');
    t.text('outcome').nullable();
    texts(t, 'text');
    t.bigInteger('at').notNullable().index();
    t.primary(['kid', 'actor', 'contest_id', 'kind']);
  });
}

/** Jobs of the console: behind a balancer the page that asks again may reach another node. @param {Knex} knex */
async function createConsoleJobs(knex) {
  await knex.schema.createTable('console_jobs', (t) => {
    // SHA-256 of the id in the address. The id itself is in no table: what an export wrote opens with it alone.
    t.text('hash').primary();
    ofTenant(t).index();
    texts(t, 'actor', 'kind', 'state');
    bigints(t, 'done', 'total', 'started_at');
    // Of the node that works at it: where that is gone, so is the job. It is kept for a while after the last one.
    t.bigInteger('beat_at').notNullable().index();
    t.text('result').nullable();
  });
  /** @param {Table} t */
  const ofJob = (t) =>
    t.text('hash').notNullable().references('hash').inTable('console_jobs').onDelete('CASCADE');
  // Whom an export is about: an erasure of one of them takes it along.
  await knex.schema.createTable('console_job_subjects', (t) => {
    ofJob(t);
    texts(t, 'subject');
    t.primary(['hash', 'subject']);
  });
  await knex.schema.createTable('console_job_parts', (t) => {
    ofJob(t);
    t.integer('part').notNullable();
    t.binary('sealed').notNullable();
    t.primary(['hash', 'part']);
  });
}

/** Counts by hour: a page about a million verdicts reads a few hundred rows. @param {Knex} knex */
async function createTallies(knex) {
  await knex.schema.createTable('tallies', (t) => {
    texts(t, 'kid', 'kind');
    bigints(t, 'hour');
    texts(t, 'name');
    bigints(t, 'n');
    t.primary(['kid', 'kind', 'hour', 'name']);
  });
  // How far each kind is counted: a moment for verdicts, a place in the log for consent.
  await knex.schema.createTable('tally_marks', (t) => {
    texts(t, 'kid', 'kind');
    bigints(t, 'upto');
    t.primary(['kid', 'kind']);
  });
  // Outcomes of reviews by the rules that had fired.
  await knex.schema.createTable('rule_reviews', (t) => {
    texts(t, 'kid', 'rule');
    bigints(t, 'upheld', 'overturned');
    t.primary(['kid', 'rule']);
  });
}

/** @param {Knex} knex */
async function createOperations(knex) {
  // Counters that several nodes share: a keyed hash of the client under a daily salt, kept two windows at most.
  await knex.schema.createTable('rate_counters', (t) => {
    texts(t, 'bucket', 'client');
    t.bigInteger('window_ends').notNullable().index();
    bigints(t, 'hits');
    t.primary(['bucket', 'client', 'window_ends']);
  });
  // Jobs of the housekeeping that fail, each with the tenant that it fails for: gpd doctor names them.
  await knex.schema.createTable('job_failures', (t) => {
    // An empty kid: the job is not about one tenant, or could not even list them.
    texts(t, 'kid', 'job');
    bigints(t, 'since', 'failed_at');
    // Name and code of the error: its message may quote what was bound.
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
  await createConsent(knex);
  await createConsentLane(knex);
  await createIngest(knex);
  await createNetworks(knex);
  await createPolicies(knex);
  await createContests(knex);
  await createErasures(knex);
  await createConsole(knex);
  await createConsoleJobs(knex);
  await createTallies(knex);
  await createOperations(knex);
}
