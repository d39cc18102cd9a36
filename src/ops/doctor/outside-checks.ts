import { DAY, HOUR } from '../../lib/clock.ts';
import { type Check, type Finding, pass, skipped, some, span, warn } from './check.ts';
import type { Facts } from './facts.ts';

/** Whom gpd asks and whom it tells: agents' directories and webhooks. */

function judgeAgents({ agents, now }: Facts): Finding {
  if (agents.length === 0) return skipped('no directory is listed');
  const fetched = agents.filter(({ source }) => source !== 'pinned');
  const stale = fetched.filter(({ fetchedAt }) => fetchedAt === null || now - fetchedAt > 2 * DAY);
  return stale.length === 0
    ? pass(`${agents.length} directories are fresh`)
    : warn(
        `not fetched for two days: ${some(stale.map(({ url, failure }) => `${url} (${failure ?? 'never tried'})`))}`,
        'Run gpd agents refresh, and check that this server may call out by https.',
      );
}

function judgeAgentKeys({ agents }: Facts): Finding {
  if (agents.length === 0) return skipped('no directory is listed');
  const empty = agents.filter(({ usableKeys }) => usableKeys === 0);
  return empty.length === 0
    ? pass('every directory has a usable key')
    : warn(
        `no usable key: ${some(empty.map(({ url }) => url))}`,
        'Run gpd agents refresh, or pin the keys with gpd agents add URL --jwks FILE.',
      );
}

function judgeWebhooks({ webhooks }: Facts): Finding {
  if (webhooks.length === 0) return skipped('nobody is told');
  const failing = webhooks.filter(({ failed }) => failed > 0);
  return failing.length === 0
    ? pass('every delivery of the last week arrived or waits')
    : warn(
        `given up on: ${some(failing.map(({ name, failed }) => `${name} (${failed})`))}`,
        'Repair the target, then run gpd webhooks replay.',
      );
}

function judgeBacklog({ webhooks, now }: Facts): Finding {
  if (webhooks.length === 0) return skipped('nobody is told');
  const late = webhooks.filter(
    ({ oldestWaitingAt }) => oldestWaitingAt !== null && now - oldestWaitingAt > HOUR,
  );
  if (late.length === 0) return pass('nothing waits for long');
  const said = late.map(({ name, waiting, oldestWaitingAt }) => {
    return `${name} (${waiting}, the oldest for ${span(now - (oldestWaitingAt ?? now))})`;
  });
  return warn(`deliveries wait: ${some(said)}`, 'Check that gpd serve runs and that the target answers 2xx.');
}

function judgePlainWebhooks({ webhooks }: Facts): Finding {
  const plain = webhooks.filter((webhook) => webhook.plain);
  return plain.length === 0
    ? pass('every target is https')
    : warn(
        `told in the clear: ${some(plain.map(({ name }) => name))}`,
        'Add the target by https, and remove this one.',
      );
}

export const OUTSIDE_CHECKS: readonly Check<Facts>[] = [
  { id: 'agents.fresh', judge: judgeAgents },
  { id: 'agents.keys', judge: judgeAgentKeys },
  { id: 'webhooks.failed', judge: judgeWebhooks },
  { id: 'webhooks.backlog', judge: judgeBacklog },
  { id: 'webhooks.plain', judge: judgePlainWebhooks },
];
