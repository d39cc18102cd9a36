import { randomBytes } from 'node:crypto';
import { webhookSecretContext } from '../../keys/master-key.ts';
import { isoTime } from '../../lib/clock.ts';
import { makeUlid } from '../../lib/crypto.ts';
import { hostReach } from '../../lib/ip.ts';
import { parseUrl } from '../../lib/text.ts';
import { countOutbox, MAIL_LANE, replayFrom } from '../../notify/outbox.ts';
import { formatWebhookSecret, insertWebhook, listWebhooks, removeWebhook } from '../../notify/webhooks.ts';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../../schema/webhooks.ts';
import { command, withContext } from '../command.ts';
import { type Actions, MANY, REQUIRED } from '../define.ts';
import { type CommandFailed, misused, notFound, print, printTable, say } from '../output.ts';
import {
  checkOneOf,
  confirm,
  type DestructiveFlags,
  type Flags,
  noSuchTenant,
  requireTenant,
} from '../run.ts';

const SECRET_BYTES = 32;

function checkEvents(names: readonly string[]): readonly WebhookEvent[] {
  if (names.length === 0) return WEBHOOK_EVENTS;
  const all = WEBHOOK_EVENTS.join(', ');
  return names.map((name) => checkOneOf(WEBHOOK_EVENTS, name, `--event ${name}: one of ${all}`));
}

function checkTarget(text: string, allowPrivate: boolean): string {
  const url = parseUrl(text);
  const good = url?.protocol === 'https:' || (allowPrivate && url?.protocol === 'http:');
  if (url && good && url.username === '' && url.password === '') return url.href;
  throw misused(`${text}: an https URL without a password (plain http only with --allow-private)`);
}

function noSuchWebhook(id: string): CommandFailed {
  return notFound(`no webhook ${id}; \`gpd webhooks list\` shows them`);
}

async function add(
  kid: string,
  urlText: string,
  options: Flags<never, 'allowPrivate'> & { readonly event: string[] },
): Promise<void> {
  const allowPrivate = options.allowPrivate === true;
  const url = checkTarget(urlText, allowPrivate);
  const events = checkEvents(options.event);
  const createdAt = Date.now();
  const id = `wh_${makeUlid(() => createdAt, randomBytes)}`;
  const key = randomBytes(SECRET_BYTES);
  await withContext(async ({ store: { database, masterKey }, by }) => {
    const wrappedSecret = masterKey.wrap(key, webhookSecretContext(kid, id));
    const webhook = { kid, id, url, events, allowPrivate, wrappedSecret, createdAt };
    if (!(await insertWebhook(database, webhook, await by(kid)))) throw noSuchTenant(kid);
    const secret = formatWebhookSecret(key);
    print({ id, kid, url, events, secret }, () => [secret]);
    if (!allowPrivate && hostReach(new URL(url).hostname) !== 'public')
      say(
        `gpd: warning: ${url} is in this machine or network: without --allow-private nothing is sent to it`,
      );
  });
}

const list = command(async ({ database }, kid: string | undefined) => {
  if (kid !== undefined) await requireTenant(database, kid);
  const webhooks = await listWebhooks(database, kid);
  const counts = new Map<string, Record<string, number>>();
  for (const name of new Set(webhooks.map((webhook) => webhook.kid))) {
    for (const { webhook, state, count } of await countOutbox(database, name)) {
      counts.set(webhook, { ...counts.get(webhook), [state]: count });
    }
  }
  const rows = webhooks.map(({ id, kid: of, url, events, createdAt }) => {
    return { id, kid: of, url, events, createdAt: isoTime(createdAt), outbox: counts.get(id) ?? {} };
  });
  printTable(rows, rows, {
    ID: 'id',
    KID: 'kid',
    URL: 'url',
    WAITING: ({ outbox }) => outbox['waiting'] ?? 0,
    FAILED: ({ outbox }) => outbox['failed'] ?? 0,
  });
});

async function replay(kid: string, id: string, options: { readonly from: string }): Promise<void> {
  const from = Number(options.from);
  if (!Number.isSafeInteger(from) || from < 0) throw misused('--from must be the seq of an event');
  await withContext(async ({ database }) => {
    const known =
      id === MAIL_LANE || (await listWebhooks(database, kid)).some((webhook) => webhook.id === id);
    if (!known) throw noSuchWebhook(id);
    const events = await replayFrom(database, kid, id, from, Date.now());
    print({ id, events }, () => [`${events} events will be sent again`]);
  });
}

async function remove(kid: string, id: string, options: DestructiveFlags): Promise<void> {
  await confirm(options, `Removing ${id}: its waiting events will not be sent`);
  await withContext(async ({ store: { database }, by }) => {
    if (options.dryRun === true) {
      const known = (await listWebhooks(database, kid)).find((webhook) => webhook.id === id);
      if (!known) throw noSuchWebhook(id);
      const outbox = await countOutbox(database, kid);
      const waiting = outbox.find(({ webhook, state }) => webhook === id && state === 'waiting')?.count ?? 0;
      return print({ id, dryRun: true, url: known.url, waiting }, () => [
        `would be removed: ${id} to ${known.url}; ${waiting} events wait for it`,
      ]);
    }
    if (!(await removeWebhook(database, kid, id, await by(kid)))) throw noSuchWebhook(id);
    print({ id, removed: true }, () => [`${id} is removed`]);
  });
}

export const ACTIONS: Actions = {
  add: [add, { event: MANY }, { events: WEBHOOK_EVENTS.join(', ') }],
  list,
  replay: [replay, { from: REQUIRED }],
  remove,
};
