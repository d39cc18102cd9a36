import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DAY } from '../../src/lib/clock.ts';
import { type Console, signIn, startConsole, type Visitor } from '../console/support/console.ts';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { startGpd } from '../support/server.ts';
import { startRelay } from './support/relay.ts';

/** Acts that weaken a safeguard are told to notify.email, wherever they were done. */

const DPO = 'dora@acme.example';

describe('a safeguard that is switched off', () => {
  let site: Console;
  let relay: Awaited<ReturnType<typeof startRelay>>;
  let dora: Visitor;
  beforeAll(async () => {
    relay = await startRelay();
    site = await startConsole({
      gpd: {
        settings: { GPD_SMTP_URL: relay.url, GPD_SMTP_FROM: 'gpd@acme.example' },
        app: { intervals: { webhooks: 20, housekeeping: 50 } },
      },
    });
    dora = await signIn(site.url, 'dora');
    await change('review.fourEyes=true', 'consent.basis=ledger', 'retention.days=30');
    await change(`notify.email=${DPO}`);
    await findMail(/notify\.email was changed/);
  });
  afterAll(async () => {
    await site.stop();
    await relay.stop();
  });

  const change = (...values: readonly string[]) => site.gpd.json(['tenants', 'set', KID, ...values]);
  /** The rest of an hour after each mail is skipped, so that the next one is sent at once. */
  const endRest = () =>
    execute(site.gpd.dataDir, "UPDATE webhook_outbox SET next_at = 0 WHERE state = 'delivered'");
  const mailsWith = (text: RegExp) => relay.mails.filter((mail) => text.test(mail.text));

  async function findMail(text: RegExp) {
    await vi.waitFor(
      async () => {
        await endRest();
        expect(mailsWith(text)).toHaveLength(1);
      },
      { timeout: 20_000, interval: 100 },
    );
    return mailsWith(text)[0]!;
  }

  it.each([
    ['review.fourEyes=false', /One reviewer now rules alone/, `gpd tenants set ${KID} review.fourEyes=true`],
    ['retention.days=365', /kept for 365 days; it was 30/, `gpd tenants set ${KID} retention.days=30`],
    ['consent.basis=asserted', /no longer has to be proven/, `gpd tenants set ${KID} consent.basis=ledger`],
  ])('%s: says what, by whom, when and how to undo it', async (setting, sentence, undo) => {
    await change(setting);
    const { to, subject, text } = await findMail(sentence);
    expect([to, subject]).toEqual([[DPO], 'shop.example: a safeguard was changed']);
    expect(text).toMatch(/By: an operator, \d+ \w+ \d{4}(?:,| at) \d\d:\d\d UTC/);
    expect(text).toContain(`To undo: ${undo}`);
    expect(text).toContain('/console/audit');
  });

  it('keys and webhooks, both ways', async () => {
    const key = await site.gpd.json(['apikeys', 'create', KID, '--scope', 'secret', '--name', 'n']);
    const id = String(key['id']);
    const created = await findMail(new RegExp(`API key was created: ${id}, scope secret`));
    expect(created.text).toContain(`To undo: gpd apikeys revoke ${id}`);
    expect(created.text).not.toContain(String(key['key']));
    await site.gpd.json(['apikeys', 'revoke', id, '--yes']);
    expect((await findMail(new RegExp(`API key was revoked: ${id}`))).text).toContain(
      `To undo: gpd apikeys create ${KID} --scope secret`,
    );
    const hook = await site.gpd.json(['webhooks', 'add', KID, 'https://hook.example/secret-path']);
    const webhook = String(hook['id']);
    const added = await findMail(new RegExp(`webhook was added: ${webhook}, to hook\\.example`));
    expect(added.text).toContain(`To undo: gpd webhooks remove ${KID} ${webhook}`);
    await site.gpd.json(['webhooks', 'remove', KID, webhook, '--yes']);
    await findMail(new RegExp(`webhook was removed: ${webhook}`));
    for (const { text } of relay.mails) expect(text).not.toContain('secret-path');
  });

  it('a legal hold that the console releases', async () => {
    const { requestId } = await site.decide();
    const basis = 'Proceedings 12/26 before the district court.';
    await dora.act('/console/subjects/hold', { kind: 'request', id: requestId, basis });
    const holds = (await dora.get('/console/holds')).text;
    const device = /name="device" value="([\w-]{43})"/.exec(holds)?.[1] ?? '';
    await dora.act('/console/holds/release', { device });
    const { text } = await findMail(/A legal hold was released/);
    expect(text).toContain('By: a data-protection officer,');
    expect(text).not.toMatch(/Dora|Proceedings|district court/);
    expect(text).not.toContain(requestId);
  });

  it('what makes a tenant safer is told to nobody, and each act once', async () => {
    const before = relay.mails.length;
    await change('review.fourEyes=true', 'retention.days=20', 'consent.basis=ledger');
    await change('review.fourEyes=false');
    await vi.waitFor(async () => {
      await endRest();
      expect(relay.mails).toHaveLength(before + 1);
    });
    expect(relay.mails.at(-1)?.text).toMatch(/One reviewer now rules alone/);
    expect(relay.mails.at(-1)?.text).not.toMatch(/retention|basis/);
    expect(await execute(site.gpd.dataDir, 'SELECT 1 FROM audit_log WHERE unsent = 1')).toEqual([]);
  });
});

it('a change of notify.email that the server has not read yet is told to the new address', async () => {
  const relay = await startRelay();
  const settings = { GPD_SMTP_URL: relay.url };
  const behind = await startGpd({ settings, app: { intervals: { poll: DAY, housekeeping: 20 } } });
  await behind.json(['tenants', 'set', KID, `notify.email=${DPO}`]);
  const { dataDir } = behind;
  await expect.poll(() => execute(dataDir, 'SELECT 1 FROM audit_log WHERE unsent = 1')).toEqual([]);
  await behind.stop();
  const current = await startGpd({ settings, dataDir });
  await expect.poll(() => relay.mails.map(({ to }) => to)).toEqual([[DPO]]);
  expect(relay.mails[0]?.text).toMatch(/notify\.email was changed/);
  await current.stop();
  await relay.stop();
});
