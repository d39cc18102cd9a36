import type { WebhookEvent } from '../schema/webhooks.ts';

/** A mail is one more delivery of the outbox: its row names the lane instead of a webhook. */

export const MAIL_LANE = 'mail';
/** What waits here becomes one mail a day. */
export const DIGEST_LANE = 'digest';

export interface MailItem {
  readonly event: WebhookEvent;
  /** Of the contest or the receipt. */
  readonly number: string | null;
}

/** Encrypted in the row. It holds no address of a person: that is read from the contest when the mail is sent. */
export interface MailPayload {
  /** An addressee of the tenant; null: the person of the contest. */
  readonly to: string | null;
  readonly items: readonly MailItem[];
}
