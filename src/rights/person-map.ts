import type { ERASURE_SCOPES } from '../schema/rights.ts';

/**
 * The map of a person: every table of the schema, and what retention, exports, a restore and offboarding do
 * with it. A test compares it with the migrated schema on both databases, and with what an erasure deletes
 * (erase/rows-store.ts, erase/shred-store.ts).
 */

const NOBODY = { scope: null, names: [], exported: [], reapplied: false } as const;
/** Counts and evidence that name nobody. */
const COUNTED = { ...NOBODY, expires: [], exported: ['tenant'], tenant: 'emptied' } as const;
const SETTING = { ...NOBODY, expires: ['act'], tenant: 'cascades' } as const;
const INSTALLATION = { ...NOBODY, expires: ['act'], tenant: 'stays' } as const;
/** Rows about a device, which an erasure deletes and a legal hold keeps. */
const DEVICE_DATA = { reapplied: true, tenant: 'emptied', exported: ['person', 'tenant'] } as const;
const VERDICT = { ...DEVICE_DATA, expires: ['retention'] } as const;
/** Rows that ON DELETE CASCADE deletes with their decision; a person's export has them in `decisions`. */
const OF_DECISION = {
  ...NOBODY,
  with: 'decisions',
  names: ['request_id'],
  expires: ['decision'],
  exported: ['tenant'],
  tenant: 'cascades',
} as const;
const SHREDDED = { ...NOBODY, names: ['principal'], reapplied: true } as const;
const EVIDENCE = { scope: 'consent', exported: ['person', 'tenant'], tenant: 'emptied' } as const;
/**
 * Rows that are kept as long as a contest of their device: by them the person finds its outcome, and an
 * erasure its text.
 */
const LEADS_TO_CONTEST = { keptBy: [['contests', 'durable']], walked: true } as const;

/** Tables with one row per device. */
const OF_DEVICE = {
  ...VERDICT,
  key: ['kid', 'durable'],
  names: ['durable'],
  ages: { since: ['last_at', '<'], ...LEADS_TO_CONTEST },
} as const;
const NETWORKS = {
  ...DEVICE_DATA,
  scope: 'network-marks',
  names: ['durable'],
  expires: ['time'],
  tenant: 'scanned',
} as const;

/** People first, in the order in which an erasure empties them. */
export const SUBJECT_DATA = {
  contests: {
    ...VERDICT,
    key: ['contest_id'],
    scope: 'contests',
    names: ['durable', 'request_id'],
    ages: { since: ['resolved_at', '<'], where: { status: 'resolved' } },
  },
  overrides: {
    ...VERDICT,
    key: ['kid', 'durable'],
    scope: 'override',
    names: ['durable', 'request_id'],
    expires: ['act'],
  },
  decisions: {
    ...VERDICT,
    key: ['kid', 'request_id'],
    scope: 'decisions',
    names: ['durable', 'request_id'],
    ages: { since: ['decided_at', '<'], keptBy: [['open contests', 'request_id']] },
  },
  decision_updates: { ...OF_DECISION, key: ['kid', 'earlier'] },
  decision_outcomes: { ...OF_DECISION, key: ['kid', 'request_id'] },
  links: {
    ...DEVICE_DATA,
    key: ['kid', 'request_id'],
    scope: 'links',
    names: ['request_id', 'principal'],
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
    ...DEVICE_DATA,
    key: ['kid', 'request_id'],
    scope: 'signal-summaries',
    names: ['request_id'],
    expires: ['decision', 'time'],
  },
  webhook_outbox: {
    ...NOBODY,
    key: ['seq'],
    names: ['request_id', 'principal'],
    expires: ['decision', 'time'],
    reapplied: true,
    tenant: 'emptied',
  },
  sightings: { ...OF_DEVICE, scope: 'sightings' },
  credentials: { ...OF_DEVICE, scope: 'credentials' },
  visitor_index: {
    ...VERDICT,
    key: ['kid', 'visitor_id'],
    scope: 'visitor-index',
    names: ['visitor_id', 'durable'],
    // Ids of ended epochs expire; the other ids are deleted with their device.
    ages: { since: ['ends_at', '<='], ...LEADS_TO_CONTEST },
  },
  network_marks: {
    ...NETWORKS,
    key: ['day', 'kid', 'durable', 'network'],
    // A mark of today counts in `network_days`, which is exported and compared.
    exported: [],
    reapplied: false,
  },
  network_days: { ...NETWORKS, key: ['day', 'kid', 'durable'] },

  consent_principals: {
    ...SHREDDED,
    ...EVIDENCE,
    key: ['kid', 'principal'],
    // The row stays without its key, and answers `erased`.
    expires: ['act'],
    exported: ['person', 'tenant'],
  },
  consent_openings: { ...SHREDDED, ...EVIDENCE, key: ['kid', 'seq'], expires: ['act'] },
  consent_state: { ...SHREDDED, ...EVIDENCE, key: ['kid', 'principal', 'purpose'], expires: ['act'] },
  principal_sessions: { ...SHREDDED, key: ['hash'], expires: ['time'], tenant: 'scanned' },
  // A MAC of each key stays until it expires, so that a retry does not grant again.
  idempotency_keys: { ...SHREDDED, key: ['kid', 'caller', 'key'], expires: ['time'], tenant: 'emptied' },

  // Rows that erasures themselves need.
  legal_holds: {
    ...COUNTED,
    key: ['kid', 'durable'],
    names: ['durable'],
    expires: ['act'],
    reapplied: true,
  },
  erasing: {
    ...NOBODY,
    key: ['receipt_id', 'durable', 'request_id'],
    names: ['durable', 'request_id'],
    expires: ['act'],
    tenant: 'emptied',
  },
  erasures: { ...COUNTED, key: ['receipt_id'] },
  erasure_refs: { ...COUNTED, key: ['kid', 'kind', 'ref', 'receipt'] },
  console_drafts: {
    ...COUNTED,
    key: ['kid', 'actor', 'contest_id', 'kind'],
    with: 'contests',
    expires: ['act', 'time'],
  },
  // The name of removed staff expires; the row stays for the restore of an older backup.
  staff: { ...SETTING, key: ['kid', 'id'], expires: ['act', 'time'] },
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

export const TABLES = Object.keys(SUBJECT_DATA) as TableName[];
export const rowOf = (table: TableName): SubjectTable => SUBJECT_DATA[table];

/** @returns the tables that `isWanted` picks, in the order of the map */
export const tablesWhere = (isWanted: (row: SubjectTable) => boolean): readonly TableName[] =>
  TABLES.filter((table) => isWanted(rowOf(table)));

/** Tables that the removal of a tenant empties in steps; foreign keys delete the other rows. */
export const TENANT_DATA_TABLES = tablesWhere(({ tenant }) => tenant === 'emptied' || tenant === 'scanned');

/** Rows that name a person, or hang on one that does: PostgreSQL's files are rewritten for them. */
export const PERSONAL_TABLES = tablesWhere(
  ({ names, scope, with: owner }) => names.length > 0 || scope !== null || owner !== undefined,
);

/** Tables that retention deletes row by row. */
export type AgingTable = {
  [T in TableName]: (typeof SUBJECT_DATA)[T] extends { readonly ages: object } ? T : never;
}[TableName];

type Scope = (typeof ERASURE_SCOPES)[number];

/** Columns that name a person: device, request, visitorId, keyed reference of a principal. */
export type PersonColumn = 'durable' | 'request_id' | 'visitor_id' | 'principal';

/**
 * `retention`: after `retention.days`; `decision`: when retention deletes the decision; `verdict-hour`,
 * `audit-hour`: together with its whole hour; `audit`: with the audit log; `time`: housekeeping deletes it;
 * `act`: only when somebody does something.
 */
export type Expiry = 'retention' | 'decision' | 'verdict-hour' | 'audit-hour' | 'audit' | 'time' | 'act';

/**
 * Retention deletes rows whose time is before the cutoff (`<`), or whose end is not after it (`<=`), unless a
 * legal hold on the row's device keeps them.
 */
export interface Ages {
  readonly since: readonly [column: string, is: '<' | '<='];
  /** Retention deletes only rows with these values. */
  readonly where?: Readonly<Record<string, string>>;
  /**
   * Rows of another table that keep a row, matched by a column of both: any that retention leaves, or open
   * contests alone.
   */
  readonly keptBy?: readonly (readonly [
    rows: 'contests' | 'decisions' | 'open contests',
    by: 'durable' | 'request_id',
  ])[];
  /** No index leads to the time, so that retention walks the table. */
  readonly walked?: true;
}

export interface SubjectTable {
  readonly key: readonly string[];
  /** The line of an erasure receipt that counts its rows. */
  readonly scope: Scope | null;
  readonly names: readonly PersonColumn[];
  /** Deleted with the rows of this table (ON DELETE CASCADE). */
  readonly with?: string;
  /** Empty: kept until the tenant leaves. */
  readonly expires: readonly Expiry[];
  /** Set where `expires` has `retention` or `audit`. */
  readonly ages?: Ages;
  /** Exports that contain it: the person's, and the tenant's when it leaves. */
  readonly exported: readonly ('person' | 'tenant')[];
  /** A restore compares its ids with the lines of erasures.log. */
  readonly reapplied: boolean;
  /**
   * The removal of a tenant treats the table so: `emptied` in steps; `scanned`: emptied too, but no index
   * leads there from a tenant; `cascades`: deleted with the tenant's row; `stays`: belongs to the
   * installation.
   */
  readonly tenant: 'emptied' | 'scanned' | 'cascades' | 'stays';
}
