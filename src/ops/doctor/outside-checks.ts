import { DAY, HOUR } from '../../lib/clock.ts';
import { type Checks, fail, noneOf, pass, skipped, some, span, warn } from './check.ts';

/** Whom gpd asks and whom it tells: agents' directories and webhooks. */

export const OUTSIDE_CHECKS: Checks = {
  'agents.fresh'({ agents, now }) {
    if (agents.length === 0) return skipped('no directory is listed');
    const fetched = agents.filter(({ source }) => source !== 'pinned');
    const stale = fetched.filter(({ fetchedAt }) => fetchedAt === null || now - fetchedAt > 2 * DAY);
    return noneOf(
      stale.map(({ url, failure }) => `${url} (${failure ?? 'never tried'})`),
      `${agents.length} directories are up to date`,
      warn('not fetched for two days'),
    );
  },
  'agents.keys'({ agents }) {
    if (agents.length === 0) return skipped('no directory is listed');
    const empty = agents.filter(({ usableKeys }) => usableKeys === 0);
    return noneOf(
      empty.map(({ url }) => url),
      'every directory has a usable key',
      warn('no usable key'),
    );
  },
  'webhooks.failed'({ webhooks }) {
    if (webhooks.length === 0) return skipped('no webhooks are set up');
    const failing = webhooks.filter(({ failed }) => failed > 0);
    return noneOf(
      failing.map(({ name, failed }) => `${name} (${failed})`),
      'every delivery of the last week arrived or is waiting',
      warn('abandoned'),
    );
  },
  'webhooks.backlog'({ webhooks, now }) {
    if (webhooks.length === 0) return skipped('no webhooks are set up');
    const late = webhooks.filter(
      ({ oldestWaitingAt }) => oldestWaitingAt !== null && now - oldestWaitingAt > HOUR,
    );
    if (late.length === 0) return pass('nothing has waited for long');
    const said = late.map(({ name, waiting, oldestWaitingAt }) => {
      return `${name} (${waiting}, the oldest for ${span(now - (oldestWaitingAt ?? now))})`;
    });
    return warn(`deliveries wait: ${some(said)}`);
  },
  'mail.relay'({ relay, tenants }) {
    const wanted = tenants.filter(({ wantsMail }) => wantsMail).map(({ kid }) => kid);
    if (relay) return relay.problem === null ? pass('the relay answers') : fail(relay.problem);
    return noneOf(wanted, 'no tenant asks for mail', warn('notify.email is set and GPD_SMTP_URL is not'));
  },
  'webhooks.plain'({ webhooks }) {
    const plain = webhooks.filter((webhook) => webhook.plain);
    return noneOf(
      plain.map(({ name }) => name),
      'every target is https',
      warn('sent over plain http'),
    );
  },
};
