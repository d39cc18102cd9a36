import type { AuditAction } from '../audit/audit-store.ts';
import type { AT_DOOR } from '../ingest/verdict/verdict.ts';
import type { ActorRole } from '../lib/act.ts';
import { DAY, HOUR, MINUTE } from '../lib/clock.ts';
import { SOON_DAYS, untilDue } from '../rights/contests/period.ts';
import type { VisitorClass } from '../schema/responses.ts';
import type { ComplaintStatus, ContestOutcome, ERASURE_SCOPES } from '../schema/rights.ts';

/** Texts that several pages of the console share. Texts of a single page are in its template. */

export const WORDS = {
  role: {
    reviewer: 'Reviewer',
    dpo: 'Data-protection officer',
    subject: 'Data subject',
    operator: 'Operator',
    system: 'gpd itself',
  } satisfies Record<ActorRole, string>,
  class: {
    human: 'Person',
    declared_agent: 'Declared agent',
    undeclared_automation: 'Automated visit',
    unknown: 'Not decided',
    agent: 'Agent refused',
  } satisfies Record<VisitorClass | typeof AT_DOOR, string>,
  classMeans: {
    human: 'Nothing that counts spoke against a person at this browser.',
    declared_agent: 'A program that signed its request and proved who it is.',
    undeclared_automation: 'It looked as if a program that did not declare itself drove this browser.',
    unknown: 'There was too little evidence, or only weak signs.',
    agent: 'The policy for agents refused this request at the door; nothing was read from a device.',
  } satisfies Record<VisitorClass | typeof AT_DOOR, string>,
  outcome: {
    overturned: 'Overturned',
    upheld: 'Upheld',
  } satisfies Record<ContestOutcome, string>,
  scope: {
    sightings: 'When the device was seen',
    'visitor-index': 'Visitor ids',
    decisions: 'Decisions',
    contests: 'Objections',
    override: 'Protection by a review',
    links: 'Links to a principal',
    'signal-summaries': 'Signal summaries',
    'network-marks': 'Network counts',
    credentials: 'Passkeys',
    consent: 'Consent evidence',
    backups: 'Backups',
    storage: 'Bytes in the files of the database',
  } satisfies Record<(typeof ERASURE_SCOPES)[number], string>,
  given: {
    agent: 'declared agents',
    automation: 'undeclared automation',
  } satisfies Record<'agent' | 'automation', string>,
  caseDone: {
    claimed: 'The case is yours.',
    released: 'Others can claim the case now.',
    asked: 'Your question was recorded. The person can read it.',
    extended: 'The due date is extended. The person can read why.',
    resolved: 'The case is resolved; the person can read the outcome.',
    allowed: 'The case is resolved, and the policy lets the agent through from now on.',
    proposed: 'Your ruling is proposed. Another reviewer has to confirm it.',
    changed: 'Your proposal is changed. Another reviewer has to confirm it.',
    unchanged: 'Your proposal did not change. Another reviewer has to confirm it.',
    started: 'The template is in the form. Your own text was kept.',
    acknowledged: 'The complaint is acknowledged. Tell the person the outcome without undue delay.',
    complaintAnswered: 'The complaint is answered; the person can read the outcome.',
  } satisfies Record<string, string>,
  complaint: { received: 'Received', acknowledged: 'Acknowledged', answered: 'Answered' } satisfies Record<
    ComplaintStatus,
    string
  >,
  audit: {
    'contest.filed': 'Objection filed',
    'contest.claimed': 'Case claimed',
    'contest.released': 'Case released',
    'contest.asked': 'Question asked',
    'contest.extended': 'Due date extended',
    'contest.answered': 'Question answered',
    'contest.proposed': 'Ruling proposed',
    'contest.resolved': 'Case resolved',
    'complaint.received': 'Complaint received',
    'complaint.acknowledged': 'Complaint acknowledged',
    'complaint.answered': 'Complaint answered',
    'principal.linked': 'Request linked with a principal',
    'transparency.viewed': 'Transparency view shown',
    'dsar.exported': 'Own data exported',
    'dsar.staff-exported': 'Data exported by staff',
    'subject.erased': 'Erasure of a subject',
    'subject.searched': 'Subject searched',
    'hold.placed': 'Legal hold placed',
    'hold.released': 'Legal hold released',
    'staff.signed-in': 'Signed in',
    'staff.signed-out': 'Signed out',
    'staff.session-revoked': 'Session ended by staff',
    'staff.invited': 'Staff invited',
    'staff.joined': 'Staff joined with a passkey',
    'staff.removed': 'Staff removed',
    'audit.exported': 'Audit log exported',
    'decision.read': 'Decision read',
    'evidence.made': 'File of evidence made',
    'tenant.set': 'Setting changed',
    'apikey.created': 'API key created',
    'apikey.revoked': 'API key revoked',
    'key.rotated': 'Key rotated',
    'key.destroyed': 'Key destroyed',
    'purpose.defined': 'Purpose defined',
    'policy.published': 'Policy published',
    'agent.added': 'Agent added',
    'agent.removed': 'Agent removed',
    'webhook.added': 'Webhook added',
    'webhook.removed': 'Webhook removed',
    'backup.made': 'Backup made',
    'restore.done': 'Backup restored',
    'mcp.asked': 'Question of a coding agent',
  } satisfies Record<AuditAction, string>,
};

const numberFormat = new Intl.NumberFormat('en-US');
const PLACEHOLDER = /\{(\w+)\}/g;

/**
 * Replaces the `{places}` of a text by values; numbers get thousands separators.
 * @param one the text for `n` = 1
 */
export function say(
  text: string,
  values: Readonly<Record<string, string | number>>,
  one: string = text,
): string {
  return (values['n'] === 1 ? one : text).replace(PLACEHOLDER, (_whole, name: string) => {
    const value = values[name];
    return typeof value === 'number' ? numberFormat.format(value) : (value ?? '');
  });
}

const URGENT_DAYS = 2;

/** @returns a due date in words, and a level for its colour. The command line shows the same words. */
export function dueIn(dueAt: number, now: number) {
  const { late: isLate, unit, n } = untilDue(dueAt, now);
  const count = say(`{n} ${unit}`, { n }, `1 ${unit.slice(0, -1)}`);
  const isUnderAnHour = unit === 'hours' && n === 0;
  if (isLate)
    return { text: isUnderAnHour ? 'overdue by less than an hour' : `overdue by ${count}`, level: 'late' };
  const days = unit === 'days' ? n : 0;
  const level = days < URGENT_DAYS ? 'urgent' : days < SOON_DAYS ? 'soon' : 'calm';
  return { text: isUnderAnHour ? 'due within the hour' : `due in ${count}`, level };
}

/** Uses the largest unit that fits. */
export function timeAgo(at: number, now: number): string {
  const age = Math.max(0, now - at);
  if (age < MINUTE) return 'just now';
  if (age < HOUR) return say('{n} minutes ago', { n: Math.floor(age / MINUTE) }, '1 minute ago');
  if (age < 2 * DAY) return say('{n} hours ago', { n: Math.floor(age / HOUR) }, '1 hour ago');
  return say('{n} days ago', { n: Math.floor(age / DAY) }, '1 day ago');
}
