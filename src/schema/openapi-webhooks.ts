import { z } from 'zod';
import { WEBHOOK_EVENTS, type WebhookEvent } from './webhooks.ts';

/** The deliveries of gpd as the OpenAPI document describes them: `webhooks` of version 3.1. */

const SUMMARIES: Readonly<Record<WebhookEvent, string>> = {
  'decision.recorded': 'gpd recorded a verdict.',
  'decision.erased': 'A person or staff had a decision erased.',
  'contest.filed': 'A contest was filed.',
  'contest.asked': 'A reviewer asked the person a question.',
  'contest.answered': 'The person answered.',
  'contest.extended': 'The contest got more time.',
  'contest.due-soon': 'A contest is due within seven days.',
  'contest.overdue': 'The due date of a contest passed.',
  'contest.resolved': 'A contest was resolved.',
  'complaint.received': 'A person complained (`rights.profile=uk`).',
  'complaint.answered': 'Staff answered a complaint.',
  'consent.granted': 'A person agreed.',
  'consent.denied': 'A person did not agree.',
  'consent.withdrawn': 'A person withdrew a grant.',
  'consent.gpc-opt-out': 'A Global Privacy Control signal opted the person out.',
  'subject.linked': 'A browser was joined with an account.',
  'subject.erased': 'The consent evidence of a person was erased.',
  'log.fork': 'A witness saw two histories of one log.',
  'erasure.incomplete': 'An erasure is held up.',
  'export.ready': 'Staff exported what is held about a person.',
  'backup.failed': '`gpd backup` failed.',
};

/** The body of each delivery (docs/webhooks.md has the fields of `data`). */
export const webhookDeliverySchema = z.object({
  type: z.string(),
  timestamp: z.string(),
  /** Rises in the order in which events were queued; it has gaps. */
  seq: z.int(),
  data: z.record(z.string(), z.unknown()),
});

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
  example,
});
/** Standard Webhooks: the SDKs verify them. */
const HEADERS = [
  header('webhook-id', 'The same for every delivery of one event.', 'evt_42'),
  header('webhook-timestamp', 'Seconds since the epoch.', '1795402800'),
  header(
    'webhook-signature',
    'v1, and the base64 of the HMAC-SHA-256 of id, timestamp and body.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
];

const DATA: Partial<Record<WebhookEvent, object>> = {
  'consent.withdrawn': { principalId: 'u-1', purpose: 'newsletter', seq: 41, hash: 'ab'.repeat(32) },
  'subject.erased': { subject: 'ijy9EDjz0trW0wyUjxhWdmJ0qVIfyspfGwjMu8cm83o', seq: 41 },
  'decision.erased': { ref: '6Ks2URPI5GuVRwub0fPIAM-TSj-l8eOvKy8-W7jwvSI' },
};

/** @param schema the reference to the body in `components` */
export function webhookOperations(schema: object) {
  const operation = (type: WebhookEvent) => ({
    post: {
      // A generator makes one handler of each: onDecisionErased.
      operationId: `on${type.replace(/(?:^|[.-])(.)/g, (_all, letter: string) => letter.toUpperCase())}`,
      summary: SUMMARIES[type],
      parameters: HEADERS,
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema,
            example: { type, timestamp: '2026-11-23T03:00:00.000Z', seq: 42, data: DATA[type] ?? {} },
          },
        },
      },
      responses: { '2XX': { description: 'Received. gpd repeats a delivery that got another answer.' } },
    },
  });
  return Object.fromEntries(WEBHOOK_EVENTS.map((type) => [type, operation(type)]));
}
