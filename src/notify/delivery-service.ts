import { postWebhook } from '../egress/send.ts';
import { outboxContext, webhookSecretContext } from '../keys/master-key.ts';
import { isoTime } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';
import type { Installation, TenantDirectory } from '../tenants/directory.ts';
import type { Webhook } from '../tenants/tenant-store.ts';
import { type Mailing, type MailRow, mailNotices } from './mail-service.ts';
import type { MailPayload } from './notify-service.ts';
import { type Due, isStaffLane, MAIL_LANE } from './outbox-store.ts';
import { webhookHeaders } from './webhooks-store.ts';

/** Delivers one event to a webhook, or one mail. */

export interface DeliveryDeps extends Pick<Installation, 'database' | 'clock' | 'tenantOf'> {
  readonly tenants: Pick<TenantDirectory, 'masterKey' | 'all' | 'hasWebhooks'>;
  /** The decision, in the form of `GET /v1/decisions/{requestId}`; null once it was erased. */
  readonly findDecision: (kid: string, requestId: string) => Promise<object | null>;
  /** Null: no relay is configured. */
  readonly mail: Mailing | null;
  readonly onFault: (error: unknown) => void;
}

export interface DeliveryOutcome {
  /** Null: it arrived. */
  readonly failure: string | null;
  /** True: the target answered; null: it was not called. */
  readonly answered: boolean | null;
  /** True: a retry cannot succeed. */
  readonly final?: true;
}

const ARRIVED: DeliveryOutcome = { failure: null, answered: true };
const NOTHING_LEFT: DeliveryOutcome = { failure: 'nothing is left to send', answered: null, final: true };
const DAMAGED: DeliveryOutcome = {
  failure: 'its stored payload cannot be read',
  answered: null,
  final: true,
};
// Removing a tenant removes its events: this node is behind, or cannot read the tenant.
const UNKNOWN: DeliveryOutcome = { failure: 'the webhook is not known here', answered: null };

const whyOf = (error: unknown): string => (error instanceof Error ? error.message : 'it cannot be reached');

const isMail = (due: Due): boolean => due.webhook === MAIL_LANE || isStaffLane(due);

const webhookOf = ({ tenantOf }: DeliveryDeps, { kid, webhook }: Due): Webhook | undefined =>
  tenantOf(kid)?.webhooks.find(({ id }) => id === webhook);

/** @returns null when it was erased meanwhile, or the tenant is unknown here */
async function readPayload(deps: DeliveryDeps, due: Due): Promise<object | null> {
  if (due.request_id !== null) return deps.findDecision(due.kid, due.request_id);
  const wrapper = deps.tenantOf(due.kid)?.wrapper;
  if (due.sealed === null || !wrapper) return null;
  return JSON.parse(wrapper.unwrap(due.sealed, outboxContext(due.kid)).toString()) as object;
}

async function post(deps: DeliveryDeps, due: Due, webhook: Webhook, data: object): Promise<DeliveryOutcome> {
  const body = JSON.stringify({
    type: due.event,
    timestamp: isoTime(Number(due.created_at)),
    seq: Number(due.seq),
    data,
  });
  const timestamp = Math.floor(deps.clock() / 1000);
  let called = false;
  try {
    const key = deps.tenants
      .masterKey()
      .unwrap(webhook.wrappedSecret, webhookSecretContext(webhook.kid, webhook.id));
    const headers = webhookHeaders(key, `evt_${due.seq}`, timestamp, body);
    called = true;
    const status = await postWebhook(webhook, body, headers);
    return { failure: status >= 200 && status < 300 ? null : `it answered ${status}`, answered: true };
  } catch (error) {
    return { failure: whyOf(error), answered: called ? false : null };
  }
}

async function mail(deps: DeliveryDeps, rows: readonly MailRow[]): Promise<DeliveryOutcome> {
  const [first] = rows;
  const tenant = first && deps.tenantOf(first.kid);
  if (!deps.mail) return { failure: 'no relay is set', answered: null };
  try {
    return tenant && (await mailNotices(deps.mail, tenant, rows)) ? ARRIVED : NOTHING_LEFT;
  } catch (error) {
    if (error instanceof Unavailable) throw error;
    return { failure: whyOf(error), answered: false };
  }
}

/**
 * Delivers one event, or the mails of one lane as a single mail.
 * @returns the outcome of each row
 * @throws {Unavailable} when the database cannot be read: the events wait
 */
export async function deliver(deps: DeliveryDeps, rows: readonly Due[]): Promise<readonly DeliveryOutcome[]> {
  const outcomes = new Map<Due, DeliveryOutcome>();
  const readable: { readonly due: Due; readonly payload: object }[] = [];
  for (const due of rows) {
    try {
      const webhook = isMail(due) || webhookOf(deps, due);
      const payload = webhook && (await readPayload(deps, due));
      if (payload) readable.push({ due, payload });
      else outcomes.set(due, webhook ? NOTHING_LEFT : UNKNOWN);
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      // The row is damaged, and a retry cannot fix it.
      deps.onFault(error);
      outcomes.set(due, DAMAGED);
    }
  }
  const [one] = readable;
  const webhook = one && webhookOf(deps, one.due);
  const mails = readable.map(({ due, payload }): MailRow => ({ ...due, ...(payload as MailPayload) }));
  const shared = one && (webhook ? await post(deps, one.due, webhook, one.payload) : await mail(deps, mails));
  return rows.map((due) => outcomes.get(due) ?? shared ?? NOTHING_LEFT);
}
