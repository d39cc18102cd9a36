/** Events that a webhook can be sent (contract 3.6, 6 and 7). */
export const WEBHOOK_EVENTS = [
  'decision.recorded',
  'decision.erased',
  'contest.filed',
  'contest.asked',
  'contest.answered',
  'contest.extended',
  'contest.due-soon',
  'contest.overdue',
  'contest.resolved',
  'consent.granted',
  'consent.denied',
  'consent.withdrawn',
  'consent.gpc-opt-out',
  'subject.linked',
  'subject.erased',
  'log.fork',
  'erasure.incomplete',
  'export.ready',
  'backup.failed',
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];
