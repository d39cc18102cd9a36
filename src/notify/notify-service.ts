import { rightsRef } from '../audit/audit-store.ts';
import type { SafeguardAct } from '../audit/untold-store.ts';
import type { Transaction } from '../db/sql.ts';
import { outboxContext } from '../keys/master-key.ts';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../schema/webhooks.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { enqueue, type Lane, MAIL_LANE, type OutboxEvent, STAFF_LANES } from './outbox-store.ts';

/**
 * Enqueues every message: one outbox row for each webhook and each addressee. The dispatcher delivers them.
 */

export interface Notice {
  readonly event: OutboxEvent;
  /** The payload for webhooks. */
  readonly data: object;
  /** The number of the contest or receipt, for mails. */
  readonly number?: string;
  /** True: the person of the contest may get a mail. */
  readonly hasEmail?: boolean;
  /** The person's keyed reference, by which an erasure finds the row. */
  readonly principal?: string;
  readonly at: number;
}

/**
 * The payload of a mail. It has no address of a person: that is read from the contest when the mail is sent.
 */
export interface MailPayload {
  /** An addressee of the tenant; null: the person of the contest. */
  readonly to: string | null;
  readonly number: string | null;
  /** Only of `safeguard.weakened`. */
  readonly act?: SafeguardAct;
}

/** Events that become meaningless when the contest is resolved. */
export const OPEN_CONTEST_EVENTS: readonly OutboxEvent[] = [
  'contest.asked',
  'contest.extended',
  'contest.due-soon',
  'contest.overdue',
  'complaint.acknowledged',
];
/** Filing a contest sends no mail to the person: a stranger could make gpd write to anyone. */
const PERSON_EVENTS: readonly OutboxEvent[] = [
  ...OPEN_CONTEST_EVENTS,
  'contest.resolved',
  'complaint.answered',
];
const STAFF_EVENTS: readonly OutboxEvent[] = [
  ...PERSON_EVENTS,
  'contest.filed',
  'contest.answered',
  'complaint.received',
  'erasure.incomplete',
  'export.ready',
  'backup.failed',
  'log.fork',
];

const encrypt = ({ wrapper, kid }: Tenant, payload: object): string =>
  wrapper.wrap(Buffer.from(JSON.stringify(payload)), outboxContext(kid));

interface Row<Event extends OutboxEvent = OutboxEvent> {
  readonly webhook: string;
  readonly event: Event;
  readonly ciphertext: string;
}

/** Rows for the webhooks that subscribe to the event, all with one ciphertext. */
export function webhookRows(tenant: Tenant, event: WebhookEvent, data: object): readonly Row<WebhookEvent>[] {
  const webhooks = tenant.webhooksFor(event);
  if (webhooks.length === 0) return [];
  const ciphertext = encrypt(tenant, data);
  return webhooks.map((webhook) => ({ webhook, event, ciphertext }));
}

const staffLane = ({ rightsKey }: Tenant, address: string): string =>
  STAFF_LANES + rightsRef(rightsKey, 'addressee', address);

/** The staff lanes of these tenants: one per address, so that a refused address delays no other. */
export const staffLanesOf = (tenants: readonly Tenant[]): readonly Lane[] =>
  tenants.flatMap((tenant) =>
    tenant.settings['notify.email'].map((to) => ({ kid: tenant.kid, webhook: staffLane(tenant, to) })),
  );

/** One row for each address of the tenant. */
const staffRows = (tenant: Tenant, event: OutboxEvent, payload: Omit<MailPayload, 'to'>): readonly Row[] =>
  tenant.settings['notify.email'].map((to) => {
    return { webhook: staffLane(tenant, to), event, ciphertext: encrypt(tenant, { to, ...payload }) };
  });

function mailRows(tenant: Tenant, { event, number, hasEmail = false }: Notice): readonly Row[] {
  const staff = STAFF_EVENTS.includes(event) ? staffRows(tenant, event, { number: number ?? null }) : [];
  if (!hasEmail || !PERSON_EVENTS.includes(event)) return staff;
  return [
    ...staff,
    { webhook: MAIL_LANE, event, ciphertext: encrypt(tenant, { to: null, number: number ?? null }) },
  ];
}

/** Adds a notice to the outbox, in the transaction of the change that it reports. */
export function notify(tx: Transaction, tenant: Tenant, notice: Notice): Promise<void> {
  const { event, data, principal = null, at } = notice;
  const ofWebhooks = WEBHOOK_EVENTS.find((name) => name === event);
  const rows = [...(ofWebhooks ? webhookRows(tenant, ofWebhooks, data) : []), ...mailRows(tenant, notice)];
  return enqueue(
    tx,
    rows.map((row) => ({ ...row, kid: tenant.kid, principal, requestId: null, at })),
  );
}

/** Adds a mail to each staff address about an act that weakened a safeguard. */
export function notifyStaff(tx: Transaction, tenant: Tenant, act: SafeguardAct): Promise<void> {
  const rows = staffRows(tenant, 'safeguard.weakened', { number: null, act });
  return enqueue(
    tx,
    rows.map((row) => ({ ...row, kid: tenant.kid, principal: null, requestId: null, at: act.at })),
  );
}
