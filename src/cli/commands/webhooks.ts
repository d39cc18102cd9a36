import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { webhookSecretContext } from '../../keys/master-key.ts';
import { isoTime } from '../../lib/clock.ts';
import { createUlid } from '../../lib/crypto.ts';
import { hostReach } from '../../lib/ip.ts';
import { parseUrl } from '../../lib/text.ts';
import { countOutbox, lastFailures, MAIL_LANE, replayFrom } from '../../notify/outbox-store.ts';
import {
  formatWebhookSecret,
  insertWebhook,
  listWebhooks,
  removeWebhook,
} from '../../notify/webhooks-store.ts';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../../schema/webhooks.ts';
import {
  addCommand,
  type CommandContext,
  checkInteger,
  checkOneOf,
  collect,
  type Flags,
  noSuchTenant,
  ONE_KID,
  requireTenant,
  YES,
} from '../command-service.ts';
import {
  type CommandFailed,
  confirm,
  type DestructiveFlags,
  misused,
  notFound,
  print,
  printTable,
  say,
} from '../io-service.ts';

export function define(webhooks: Command): void {
  addCommand(webhooks, 'add <kid>', add, {
    about: 'add a target; the secret that verifies its deliveries is printed once',
    example: 'gpd webhooks add shop https://hooks.shop.example/gpd --event contest.filed',
  })
    .argument('<url>', 'address that the events are sent to')
    .option(
      '--event <name>',
      `one of ${WEBHOOK_EVENTS.join(', ')}; repeat it for more (default: all)`,
      collect,
      [],
    )
    .option('--allow-private', 'allow a target with a private address');
  addCommand(webhooks, 'list', list, {
    about: 'list the targets and their waiting events',
    example: 'gpd webhooks list shop',
  }).argument(...ONE_KID);
  addCommand(webhooks, 'replay <kid>', replay, {
    about: 'send events again',
    example: 'gpd webhooks replay shop wh_01KAY0 --from 120',
  })
    .argument('<id>', 'the webhook that `gpd webhooks list` shows, or mail for the mails to people')
    .requiredOption('--from <seq>', 'start with this event');
  addCommand(webhooks, 'remove <kid>', remove, {
    about: 'remove a target',
    example: 'gpd webhooks remove shop wh_01KAY0',
  })
    .argument('<id>', 'the webhook that `gpd webhooks list` shows')
    .option(...YES)
    .option('--dry-run', 'show what would no longer be sent; change nothing');
}

const SECRET_BYTES = 32;

function checkEvents(names: readonly string[]): readonly WebhookEvent[] {
  if (names.length === 0) return WEBHOOK_EVENTS;
  return names.map((name) => checkOneOf('--event', name, WEBHOOK_EVENTS));
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
  { by, open }: CommandContext,
  kid: string,
  urlText: string,
  options: Flags<never, 'allowPrivate'> & { readonly event: string[] },
): Promise<void> {
  const allowPrivate = options.allowPrivate === true;
  const url = checkTarget(urlText, allowPrivate);
  const events = checkEvents(options.event);
  const createdAt = Date.now();
  const id = `wh_${createUlid(() => createdAt, randomBytes)}`;
  const key = randomBytes(SECRET_BYTES);
  const { database, masterKey } = await open();
  const wrappedSecret = masterKey.wrap(key, webhookSecretContext(kid, id));
  const webhook = { kid, id, url, events, allowPrivate, wrappedSecret, createdAt };
  if (!(await insertWebhook(database, webhook, await by(kid)))) throw noSuchTenant(kid);
  const secret = formatWebhookSecret(key);
  print({ id, kid, url, events, secret }, () => [secret]);
  if (!allowPrivate && hostReach(new URL(url).hostname) !== 'public')
    say(`gpd: warning: ${url} is in this machine or network: without --allow-private nothing is sent to it`);
}

async function list({ open }: CommandContext, kid: string | undefined): Promise<void> {
  const { database } = await open();
  if (kid !== undefined) await requireTenant(database, kid);
  const webhooks = await listWebhooks(database, kid);
  const counts = new Map<string, Record<string, number>>();
  const failures = new Map<string, string>();
  for (const name of new Set(webhooks.map((webhook) => webhook.kid))) {
    for (const [webhook, failure] of await lastFailures(database, name)) failures.set(webhook, failure);
    for (const { webhook, state, count } of await countOutbox(database, name)) {
      counts.set(webhook, { ...counts.get(webhook), [state]: count });
    }
  }
  const rows = webhooks.map(({ id, kid: webhookKid, url, events, createdAt }) => {
    const [outbox, lastFailure] = [counts.get(id) ?? {}, failures.get(id) ?? null];
    return { id, kid: webhookKid, url, events, createdAt: isoTime(createdAt), outbox, lastFailure };
  });
  printTable(rows, 'no webhooks; `gpd webhooks add` adds one', {
    ID: 'id',
    KID: 'kid',
    URL: 'url',
    WAITING: ({ outbox }) => outbox['waiting'] ?? 0,
    FAILED: ({ outbox }) => outbox['failed'] ?? 0,
    CREATED: ({ createdAt }) => createdAt.slice(0, 10),
    'LAST FAILURE': 'lastFailure',
  });
}

async function replay({ open }: CommandContext, kid: string, id: string, options: { readonly from: string }) {
  const from = checkInteger('--from', options.from, [0, Number.MAX_SAFE_INTEGER], 'the seq of an event');
  const { database } = await open();
  const exists = id === MAIL_LANE || (await listWebhooks(database, kid)).some((webhook) => webhook.id === id);
  if (!exists) throw noSuchWebhook(id);
  const events = await replayFrom(database, kid, id, from, Date.now());
  print({ id, events }, () => [`${events} events will be sent again`]);
}

async function remove({ by, open }: CommandContext, kid: string, id: string, options: DestructiveFlags) {
  await confirm(options, `Removing ${id}: its waiting events will not be sent`);
  const { database } = await open();
  if (options.dryRun === true) {
    const target = (await listWebhooks(database, kid)).find((webhook) => webhook.id === id);
    if (!target) throw noSuchWebhook(id);
    const outbox = await countOutbox(database, kid);
    const waiting = outbox.find(({ webhook, state }) => webhook === id && state === 'waiting')?.count ?? 0;
    return print({ id, dryRun: true, url: target.url, waiting }, () => [
      `would be removed: ${id} to ${target.url}; ${waiting} events wait for it`,
    ]);
  }
  if (!(await removeWebhook(database, kid, id, await by(kid)))) throw noSuchWebhook(id);
  print({ id, removed: true }, () => [`${id} is removed`]);
}
