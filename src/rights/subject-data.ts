import type { SubjectTable } from './subject-table.ts';

/**
 * The map of a person: every table of the schema, and what erasure, holds, retention, exports, a restore and offboarding do with
 * it. All of them are folds over this page; a test compares it with the migrated schema on both databases.
 */

const NOBODY = { scope: null, names: [], found: [], held: false, exported: [], reapplied: false } as const;
/** Counts and evidence that name nobody. */
const COUNTED = { ...NOBODY, expires: [], exported: ['tenant'], tenant: 'emptied' } as const;
const SETTING = { ...NOBODY, expires: ['act'], tenant: 'cascades' } as const;
const INSTALLATION = { ...NOBODY, expires: ['act'], tenant: 'stays' } as const;
/** What an erasure deletes and a hold may keep. */
const HELD = { held: true, reapplied: true, tenant: 'emptied', exported: ['person', 'tenant'] } as const;
const VERDICT = { ...HELD, byVisitor: true, expires: ['retention'] } as const;
/** By the cascade it leaves with its decision; a person's export has it in `decisions`. */
const OF_DECISION = {
  ...NOBODY,
  with: 'decisions',
  names: ['request_id'],
  expires: ['decision'],
  exported: ['tenant'],
  tenant: 'cascades',
} as const;
const SHREDDED = { ...NOBODY, names: ['principal'], found: ['principal'], reapplied: true } as const;
const EVIDENCE = { scope: 'consent', exported: ['person', 'tenant'], tenant: 'emptied' } as const;
/** By the device the person asks for the outcome of a contest, and an erasure finds the statement. */
const LEADS_TO_CONTEST = { keptBy: [['contests', 'durable']], walked: true } as const;

/** One row a device. */
const OF_DEVICE = {
  ...VERDICT,
  key: ['kid', 'durable'],
  names: ['durable'],
  found: ['durable'],
  ages: { since: ['last_at', '<'], ...LEADS_TO_CONTEST },
} as const;
const NETWORKS = {
  ...HELD,
  scope: 'network-marks',
  names: ['durable'],
  found: ['durable'],
  expires: ['time'],
  tenant: 'scanned',
} as const;

/** People first, in the order in which an erasure empties them. */
export const SUBJECT_DATA = {
  // A ruling that commits meanwhile writes its override before it releases the contest.
  contests: {
    ...VERDICT,
    key: ['contest_id'],
    scope: 'contests',
    names: ['durable', 'request_id'],
    found: ['contest'],
    ages: { since: ['resolved_at', '<'], where: { status: 'resolved' } },
  },
  overrides: {
    ...VERDICT,
    key: ['kid', 'durable'],
    scope: 'override',
    names: ['durable', 'request_id'],
    found: ['override'],
    expires: ['act'],
  },
  decisions: {
    ...VERDICT,
    key: ['kid', 'request_id'],
    scope: 'decisions',
    names: ['durable', 'request_id'],
    found: ['request'],
    stepped: true,
    ages: { since: ['decided_at', '<'], keptBy: [['open contests', 'request_id']] },
  },
  decision_updates: { ...OF_DECISION, key: ['kid', 'earlier'] },
  decision_outcomes: { ...OF_DECISION, key: ['kid', 'request_id'] },
  links: {
    ...HELD,
    key: ['kid', 'request_id'],
    scope: 'links',
    names: ['request_id', 'principal'],
    found: ['link', 'request'],
    stepped: true,
    expires: ['retention'],
    ages: {
      since: ['linked_at', '<'],
      keptBy: [
        ['decisions', 'request_id'],
        ['contests', 'request_id'],
      ],
      walked: true,
    },
  },
  signal_summaries: {
    ...HELD,
    key: ['kid', 'request_id'],
    scope: 'signal-summaries',
    names: ['request_id'],
    found: ['request'],
    stepped: true,
    expires: ['decision', 'time'],
  },
  webhook_outbox: {
    ...NOBODY,
    key: ['seq'],
    names: ['request_id', 'principal'],
    found: ['contest', 'request', 'principal'],
    stepped: true,
    expires: ['decision', 'time'],
    reapplied: true,
    tenant: 'emptied',
  },
  // Before the index: a visit that is under way holds its row, and its decision is there once the row is free.
  sightings: { ...OF_DEVICE, scope: 'sightings' },
  credentials: { ...OF_DEVICE, scope: 'credentials' },
  visitor_index: {
    ...VERDICT,
    key: ['kid', 'visitor_id'],
    scope: 'visitor-index',
    names: ['visitor_id', 'durable'],
    found: ['durable'],
    // Of ended epochs; those of a device that is forgotten go with it.
    ages: { since: ['ends_at', '<='], ...LEADS_TO_CONTEST },
  },
  network_marks: {
    ...NETWORKS,
    key: ['day', 'kid', 'durable', 'network'],
    // A mark of today counts in the row of its device and day, which is exported and compared.
    exported: [],
    reapplied: false,
  },
  network_days: { ...NETWORKS, key: ['day', 'kid', 'durable'] },

  consent_principals: {
    ...SHREDDED,
    ...EVIDENCE,
    key: ['kid', 'principal'],
    // The row stays without its key, and answers `erased`.
    found: ['key'],
    expires: ['act'],
    exported: ['tenant'],
  },
  consent_openings: { ...SHREDDED, ...EVIDENCE, key: ['kid', 'seq'], expires: ['act'] },
  consent_state: { ...SHREDDED, ...EVIDENCE, key: ['kid', 'principal', 'purpose'], expires: ['act'] },
  principal_sessions: { ...SHREDDED, key: ['hash'], expires: ['time'], tenant: 'scanned' },
  // A MAC of each key stays until it expires, so that a retry does not grant again.
  idempotency_keys: { ...SHREDDED, key: ['kid', 'caller', 'key'], expires: ['time'], tenant: 'emptied' },

  // What erasures themselves need.
  legal_holds: {
    ...COUNTED,
    key: ['kid', 'durable', 'scope'],
    names: ['durable'],
    expires: ['act'],
    reapplied: true,
  },
  held_erasures: {
    ...COUNTED,
    key: ['kid', 'durable', 'request_id'],
    names: ['durable', 'request_id'],
    expires: ['act'],
    reapplied: true,
  },
  erasing: {
    ...NOBODY,
    key: ['receipt_id', 'request_id'],
    names: ['durable', 'request_id'],
    expires: ['act'],
    tenant: 'emptied',
  },
  erasures: { ...COUNTED, key: ['receipt_id'] },
  console_drafts: {
    ...COUNTED,
    key: ['kid', 'actor', 'contest_id', 'kind'],
    with: 'contests',
    expires: ['act', 'time'],
  },
  console_sessions: { ...SETTING, key: ['hash'], expires: ['act', 'time'] },

  nonces: { ...NOBODY, key: ['kid', 'nonce'], expires: ['time'], tenant: 'emptied' },
  network_totals: { ...COUNTED, key: ['kid', 'day', 'shard'], expires: ['time'] },
  population: { ...COUNTED, key: ['kid', 'signal', 'value'] },
  shadow_counts: { ...COUNTED, key: ['kid', 'day', 'policy_version', 'live_class', 'shadow_class'] },
  tallies: { ...COUNTED, key: ['kid', 'kind', 'hour', 'name'], expires: ['time'] },
  tally_marks: { ...COUNTED, key: ['kid', 'kind'] },
  rule_reviews: { ...COUNTED, key: ['kid', 'rule'] },
  key_traffic: { ...COUNTED, key: ['kid', 'generation', 'day'], expires: ['time'] },
  job_failures: { ...COUNTED, key: ['kid', 'job'], expires: ['act'] },
  ledger_entries: { ...COUNTED, key: ['kid', 'seq'] },
  checkpoints: { ...COUNTED, key: ['kid', 'size'] },
  ledger_blocks: { ...COUNTED, key: ['kid', 'level', 'block'] },
  verdict_seals: { ...COUNTED, key: ['kid', 'hour'], expires: ['verdict-hour'] },
  erased_verdicts: { ...COUNTED, key: ['kid', 'hour', 'position'], expires: ['verdict-hour'] },
  audit_seals: { ...COUNTED, key: ['kid', 'hour'], expires: ['audit-hour'] },
  audit_log: { ...COUNTED, key: ['seq'], expires: ['audit'], ages: { since: ['at', '<'] } },

  tenants: { ...SETTING, key: ['kid'] },
  tenant_secrets: { ...SETTING, key: ['kid', 'purpose'] },
  tenant_policies: { ...SETTING, key: ['kid', 'mode'] },
  seal_keys: { ...SETTING, key: ['kid', 'generation'] },
  api_keys: { ...SETTING, key: ['kid', 'id'] },
  purposes: { ...SETTING, key: ['kid', 'id'] },
  consent_policies: { ...SETTING, key: ['kid', 'version'] },
  banners: { ...SETTING, key: ['kid', 'seq'] },
  webhooks: { ...SETTING, key: ['kid', 'id'] },
  ledger_heads: { ...SETTING, key: ['kid'] },

  agent_directories: { ...INSTALLATION, key: ['url'] },
  agent_nonces: { ...INSTALLATION, key: ['nonce'], expires: ['time'] },
  rate_counters: { ...INSTALLATION, key: ['bucket', 'client', 'window_ends'], expires: ['time'] },
  meta: { ...INSTALLATION, key: ['name'] },
  revisions: { ...INSTALLATION, key: ['scope'] },
} as const satisfies Record<string, SubjectTable>;

export type TableName = keyof typeof SUBJECT_DATA;
