import type { Database } from '../db/db.ts';
import type { Transaction } from '../db/sql.ts';
import { outboxContext } from '../keys/master-key.ts';
import { DAY } from '../lib/clock.ts';
import { orElse } from '../lib/functions.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { DIGEST_LANE, MAIL_LANE, type MailItem, type MailPayload } from '../webhooks/mail.ts';
import { enqueue, hasDigest, takeDigest } from '../webhooks/store.ts';
import { notifications } from './service.ts';
import type { ConsentTenant } from './tenant.ts';

export interface Notice {
  readonly event: WebhookEvent;
  readonly data: object;
  /** Of the contest or the receipt, for mails. */
  readonly number?: string;
  /** The person of the contest may be written to. */
  readonly hasEmail?: boolean;
  /** Whose it is, by keyed reference, so that an erasure finds it. */
  readonly principal?: string;
  readonly at: number;
}

/** Said only while a contest is open. */
export const OF_OPEN: readonly string[] = [
  'contest.asked',
  'contest.extended',
  'contest.due-soon',
  'contest.overdue',
];
/** Not that it was filed: a stranger could have gpd write to anybody. */
const TO_PERSON: readonly string[] = [...OF_OPEN, 'contest.resolved'];

const encrypted = ({ wrapper, kid }: ConsentTenant, payload: MailPayload): string =>
  wrapper.wrap(Buffer.from(JSON.stringify(payload)), outboxContext(kid));

/** One mail an addressee, so that a refused address holds up no other. */
function mailsOf(tenant: ConsentTenant, { event, number, hasEmail = false }: Notice) {
  const { settings } = tenant;
  const items = [{ event, number: number ?? null }];
  const webhook = settings['notify.digest'] === 'daily' ? DIGEST_LANE : MAIL_LANE;
  const staff = settings['notify.email'].map((to) => {
    return { webhook, event, sealed: encrypted(tenant, { to, items }) };
  });
  if (!hasEmail || !TO_PERSON.includes(event)) return staff;
  return [...staff, { webhook: MAIL_LANE, event, sealed: encrypted(tenant, { to: null, items }) }];
}

/** Adds a notice to the outbox, in the transaction of the change that it reports. */
export function tell(tx: Transaction, tenant: ConsentTenant, notice: Notice): Promise<void> {
  const { event, data, principal = null, at } = notice;
  const about = { kid: tenant.kid, principal, requestId: null, at };
  const told = [...notifications(tenant, event, data), ...mailsOf(tenant, notice)];
  const entries = told.map((one) => ({ ...one, ...about }));
  return enqueue(tx, entries);
}

/** What changed nothing else: a fork, a backup that failed. */
export function tellNow(database: Database, tenant: ConsentTenant, notice: Notice): Promise<void> {
  return database.transaction((tx) => tell(tx, tenant, notice));
}

function itemsOf({ wrapper, kid }: ConsentTenant, row: string | null): MailPayload | null {
  const open = () => JSON.parse(wrapper.unwrap(row ?? '', outboxContext(kid)).toString()) as MailPayload;
  // A damaged row holds up no other.
  return orElse(open, null);
}

/** What waited until the end of a day (UTC) becomes one mail an addressee. */
export async function tellDigests(database: Database, tenant: ConsentTenant, now: number): Promise<void> {
  const { kid } = tenant;
  const today = Math.floor(now / DAY) * DAY;
  if (!(await hasDigest(database, kid, today))) return;
  await database.transaction(async (tx) => {
    const digests = new Map<string, MailItem[]>();
    const rows = await takeDigest(tx, kid, today);
    for (const payload of rows.map((row) => itemsOf(tenant, row.sealed))) {
      if (payload?.to == null) continue;
      digests.set(payload.to, [...(digests.get(payload.to) ?? []), ...payload.items]);
    }
    const event = rows[0]?.event;
    if (event === undefined) return;
    const about = { kid, webhook: MAIL_LANE, event, requestId: null, principal: null, at: now };
    const mails = [...digests].map(([to, items]) => ({ ...about, sealed: encrypted(tenant, { to, items }) }));
    await enqueue(tx, mails);
  });
}
