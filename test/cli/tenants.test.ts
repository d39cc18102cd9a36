import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TENANT_SETTING_NAMES } from '../../src/tenants/settings.ts';
import { runGpd, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { createOwn, type Own } from './support/own.ts';

/** Commands on a tenant's settings, purposes, staff and notices, and the rows that they leave in its audit log. */

const TENANTS = [
  { kid: KID, origins: [ORIGIN] },
  { kid: 'other', origins: [] },
];

interface Listed {
  readonly kid: string;
  readonly settings: Record<string, unknown>;
}

interface Row {
  readonly role: string;
  readonly actor: string;
  readonly action: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

const actionsOf = async (mine: Own, kid = KID): Promise<string[]> =>
  (await mine.json<Row[]>(`audit ${kid}`)).map(({ action }) => action).reverse();

describe.concurrent('gpd tenants', () => {
  it('adds a tenant with one published seal key and the first purpose', async () => {
    const { json } = await createOwn();
    const created = await json('tenants add shop-2 --origin https://a.example --origin https://b.example');
    expect(created).toMatchObject({ kid: 'shop-2', generation: 1 });
    expect(await json('keys list shop-2')).toMatchObject([
      { generation: 1, state: 'published', publicKey: created['publicKey'] },
    ]);
    expect(await json('consent purposes list shop-2')).toMatchObject([
      { id: 'device-identification', gpc: 'opt-out' },
    ]);
    const listed = await json<Listed[]>('tenants list');
    expect(listed.map(({ kid }) => kid).sort()).toEqual([KID, 'shop-2']);
    const [settings] = listed.filter(({ kid }) => kid === 'shop-2').map((tenant) => tenant.settings);
    expect(settings).toMatchObject({ origins: ['https://a.example', 'https://b.example'] });
  });

  it('shows the settings of one, which may be left out while it is the only one, and lists all in columns', async () => {
    const { gpd, json } = await createOwn();
    await json(`apikeys create ${KID} --scope secret --name n`);
    expect(await json('keys rotate')).toMatchObject({ kid: KID, generation: 2 });
    expect(await json('tenants show')).toMatchObject({
      kid: KID,
      settings: { origins: [ORIGIN], 'retention.days': 90 },
      sealKey: 2,
      purposes: ['device-identification'],
      apiKeys: 1,
      webhooks: 0,
    });
    expect((await gpd(`tenants show ${KID}`)).stdout).toMatch(/^retention\.days +90$/m);
    const [head = '', first = ''] = (await gpd('tenants list')).stdout.split('\n');
    expect(head).toMatch(/^KID\s+SINCE\s+ORIGINS$/);
    expect(first.indexOf(ORIGIN)).toBe(head.indexOf('ORIGINS'));
  });

  it('sets several settings at once, and keeps the others', async () => {
    const { json } = await createOwn();
    const line = `tenants set ${KID} retention.days=30 'notice.controller=Acme = GmbH' ledger.public=true`;
    const { settings } = await json<Listed>(line);
    expect(settings).toMatchObject({
      origins: [ORIGIN],
      'retention.days': 30,
      'notice.controller': 'Acme = GmbH',
      'ledger.public': true,
    });
    const origins = ['https://a.example', 'https://b.example'];
    expect(await json(`tenants set ${KID} origins=${origins.join(',')}`)).toMatchObject({
      settings: { origins, 'retention.days': 30 },
    });
    expect(await json(`tenants set ${KID} origins=`)).toMatchObject({ settings: { origins: [] } });
  });

  it('rights notice prints the notices of one', async () => {
    const { dataDir, json } = await createOwn();
    const env = { GPD_DATA_DIR: dataDir, GPD_BASE_URL: 'https://id.shop.example' };
    await json(`tenants set ${KID} 'notice.controller=Shop Ltd' rights.profile=ccpa`);
    const text = await runGpd(['rights', 'notice', KID], { env });
    expect(text).toMatchObject({ code: 0, stderr: '' });
    expect(text.stdout.match(/^## .*/gm)).toHaveLength(4);
    expect(text.stdout).toContain(`Shop Ltd uses automated decision-making technology on ${ORIGIN}.`);
    expect(text.stdout).toContain(`https://id.shop.example/my-data?kid=${KID}`);
    expect(text.stdout).toContain('within 45 days');
    expect(await json(`rights notice ${KID}`)).toMatchObject({
      kid: KID,
      notices: [{ id: 'admt' }, { id: 'gdpr' }, { id: 'uk' }, { id: 'art30' }],
    });
  });
});

describe.concurrent('gpd consent purposes', () => {
  it('remove: no check of it is allowed, and the log still verifies', async () => {
    const mine = await createOwn();
    const check = () => mine.json(`consent check ${KID} alice news`);
    const remove = `consent purposes remove ${KID} news`;
    await mine.json(`consent purposes set ${KID} news --title News`);
    await mine.json(`consent grant ${KID} alice news`);
    expect(await check()).toMatchObject({ reason: 'granted' });
    const before = await mine.dump();
    await mine.json(`${remove} --dry-run`);
    expect(await mine.dump()).toEqual(before);
    expect(await mine.json(remove)).toEqual({ kid: KID, id: 'news', removed: true });
    expect(await check()).toMatchObject({ allowed: false, reason: 'unknown-purpose' });
    expect(await mine.json(`consent verify ${KID}`)).toMatchObject({ ok: true });
    expect(await mine.gpd(remove)).toMatchObject({ code: 3 });
    const [row] = await mine.json<Row[]>(`audit ${KID}`);
    expect(row?.detail).toEqual({ purpose: 'news', removed: true });
  });

  it('set defines a purpose of one tenant with the defaults, and changes what is named', async () => {
    const mine = await createOwn(TENANTS);
    const command = `consent purposes set ${KID} analytics --title`;
    const defaults = { id: 'analytics', title: 'Analytics', gpc: 'opt-out' };
    expect(await mine.json(`${command} Analytics`)).toMatchObject(defaults);
    const changed = { id: 'analytics', title: 'Measuring', gpc: 'ignore', ttlDays: 30 };
    expect(await mine.json(`${command} Measuring --gpc ignore --ttl-days 30`)).toMatchObject(changed);
    expect(await mine.json(`${command} Measuring`)).toMatchObject(changed);
    expect(await mine.json(`${command} Measuring --no-banner`)).toMatchObject({ ...changed, banner: false });
    expect(await mine.json(`${command} Measuring`)).toMatchObject({ ...changed, banner: false });
    expect((await mine.gpd(`consent purposes list ${KID}`)).stdout).toMatch(/^analytics .*\bno$/m);
    expect(await mine.json(`${command} Measuring --banner`)).toMatchObject({ ...changed, banner: true });
    const idsOf = async (kid: string): Promise<string[]> =>
      (await mine.json<{ id: string }[]>(`consent purposes list ${kid}`)).map(({ id }) => id).sort();
    expect(await idsOf(KID)).toEqual(['analytics', 'device-identification']);
    expect(await idsOf('other')).toEqual(['device-identification']);
    expect(await mine.json(`consent purposes list ${KID}`)).toContainEqual(expect.objectContaining(changed));
  });
});

it('an empty list says that it is empty, and names the next command', async () => {
  const mine = await createOwn();
  const lists = [
    [`erase list ${KID}`, 'no receipts; `gpd erase` makes the first\n'],
    [`webhooks list`, 'no webhooks; `gpd webhooks add` adds one\n'],
    [`staff list`, 'no staff; `gpd staff invite` adds somebody\n'],
    [`apikeys list`, 'no API keys; `gpd apikeys create` makes one\n'],
    [`agents list`, 'no agents; `gpd agents add` adds one\n'],
    [`contests list`, 'no open contests; `gpd contests list --all` lists the resolved ones\n'],
    [
      `contests list --all`,
      'no contests; `gpd rights notice` prints what tells people that they may object\n',
    ],
    [`rights register`, 'no requests; `gpd rights notice` prints what tells people of their rights\n'],
    [`audit ${KID}`, 'no rows; `gpd audit --help` shows the filters\n'],
    [`consent policies`, 'no policies; `gpd consent policies --publish FILE` publishes one\n'],
    [`consent banners`, 'no banner was shown yet; it needs a publishable key: `gpd apikeys create`\n'],
  ] as const;
  for (const [line, stdout] of lists) {
    expect(await mine.gpd(line)).toMatchObject({ code: 0, stdout });
    expect(await mine.json(line)).toEqual([]);
  }
});

it('the help of tenants set has every setting, with what it takes and its default', async () => {
  const { stdout } = await (await createOwn()).gpd('tenants set --help');
  const [, list = ''] = stdout.split('Settings:\n');
  const lines = list.trimEnd().split('\n');
  expect(lines.map((line) => line.trim().split(' ')[0])).toEqual(TENANT_SETTING_NAMES);
  for (const line of lines) expect(line).toMatch(/^ {2}[\w.]+ +\S.* {2}\(default: \S+\)$/);
  expect(list).toMatch(/^ {2}retention\.days +days, 1 to 3650 +\(default: 90\)$/m);
  expect(list).toMatch(/^ {2}consent\.basis +asserted \| ledger +\(default: asserted\)$/m);
  expect(list).toMatch(/^ {2}origins +origins of the pages.* \(default: empty\)$/m);
});

it('a setting of a missing tenant names the tenant, and a name is proposed only if it is near', async () => {
  const mine = await createOwn();
  const missing = await mine.gpd('tenants set nope a=b');
  expect(missing).toMatchObject({ code: 3, stdout: '' });
  expect(missing.stderr).toContain('no tenant "nope"; gpd tenants list');
  expect((await mine.gpd(`tenants set ${KID} a=b`)).stderr).toContain(
    'no setting a; `gpd tenants show` lists',
  );
  expect((await mine.gpd(`tenants set ${KID} retention.day=30`)).stderr).toContain(
    'did you mean retention.days?',
  );
});

describe('gpd staff', () => {
  it('prints one link with the name, keeps nothing that opens it, and removes a name once', async () => {
    const mine = await createOwn();
    const { stdout } = await mine.gpd("staff invite 'Rosa R' --role dpo");
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:8080\/console\/join#Rosa%20R\.[\w-]{43}\n$/);
    const [, secret = ''] = /\.([\w-]{43})\n$/.exec(stdout) ?? [];
    const listed = await mine.gpd('staff list');
    expect(listed.stdout).toMatch(/Rosa R +\w+ +dpo +invited until \d{4}-/);
    const shown = await mine.gpd(`audit ${KID} --json`);
    for (const text of [listed.stdout, shown.stdout]) expect(text).not.toContain(secret);
    expect(shown.stdout).not.toContain('Rosa');
    expect((await mine.gpd("staff remove 'Rosa R' --dry-run")).stdout).toContain('would be removed');
    expect(await mine.json('staff list')).toHaveLength(1);
    expect((await mine.gpd("staff remove 'Rosa R' --yes")).code).toBe(0);
    expect((await mine.gpd("staff remove 'Rosa R' --yes")).code).toBe(3);
  });

  it('removes the last dpo of a tenant, and says so', async () => {
    const mine = await createOwn();
    for (const [name, role] of [
      ['Rosa', 'dpo'],
      ['Dora', 'dpo'],
      ['Otto', 'reviewer'],
    ])
      await mine.gpd(`staff invite ${name} --role ${role}`);
    expect((await mine.gpd('staff remove Rosa --dry-run')).stderr).toContain('Rosa is the last dpo');
    expect(await mine.json('staff list')).toHaveLength(3);
    expect(await mine.gpd('staff remove Otto')).toMatchObject({ code: 0, stderr: '' });
    // Nothing may delay the removal of a lost passkey: a script is warned and not asked.
    const removed = await mine.gpd('staff remove Rosa');
    expect([removed.code, removed.stderr]).toEqual([0, expect.stringContaining('the last dpo')]);
    expect(await mine.json('staff list')).toMatchObject([{ name: 'Dora' }]);
  });

  it('a link to an address of digits cannot be used: the default warns, and a public one is refused', async () => {
    const mine = await createOwn();
    const words = /browsers make passkeys for a name such as localhost, not for an address of digits/;
    const warned = await mine.gpd('staff invite Rosa --role dpo');
    expect(warned).toMatchObject({ code: 0 });
    expect(warned.stderr).toMatch(words);
    for (const GPD_BASE_URL of ['http://127.0.0.1:8080', 'https://192.0.2.7', 'https://[2001:db8::1]']) {
      const refused = await runGpd(['staff', 'invite', 'Remy', '--role', 'dpo'], {
        env: { ...mine.env, GPD_BASE_URL },
      });
      expect(refused).toMatchObject({ code: 78, stdout: '' });
      expect(refused.stderr).toMatch(words);
    }
    const named = await runGpd(['staff', 'invite', 'Remy', '--role', 'dpo'], {
      env: { ...mine.env, GPD_BASE_URL: 'http://localhost:8080' },
    });
    expect(named).toMatchObject({ code: 0, stderr: '' });
    expect(named.stdout).toMatch(/^http:\/\/localhost:8080\/console\/join#/);
  });

  it('a restore brings back no invitation, which may have been used or replaced since the backup', async () => {
    const mine = await createOwn();
    const file = join(tempDir('backup'), 'gpd.backup');
    await mine.gpd('staff invite Rosa --role dpo');
    await mine.gpd('backup', file);
    await mine.gpd('staff invite Rosa --role reviewer');
    expect((await mine.gpd('restore', file, '--yes')).code).toBe(0);
    expect(await mine.query('SELECT role, invite_hash FROM staff')).toEqual([
      { role: 'dpo', invite_hash: null },
    ]);
    const [member] = await mine.json<readonly { readonly inviteUntil: string }[]>('staff list');
    expect(Date.parse(member?.inviteUntil ?? '')).toBeLessThanOrEqual(Date.now());
    expect((await mine.gpd('staff invite Rosa --role reviewer')).code).toBe(0);
  });
});

describe.concurrent('the audit log of operators', () => {
  it('every act has its row, and no row holds a secret', async () => {
    const mine = await createOwn(TENANTS);
    const policy = join(tempDir('policy'), 'policy.txt');
    writeFileSync(policy, 'what we do');
    const key = await mine.json(`apikeys create ${KID} --scope secret --name n`);
    await mine.json(`apikeys revoke ${String(key['id'])} --yes`);
    await mine.json(`keys rotate ${KID}`);
    await mine.json(`keys destroy ${KID} 1 --yes`);
    const shared = await mine.json(`keys symmetric ${KID}`);
    await mine.json(`consent purposes set ${KID} ads --title Ads`);
    await mine.json(`consent policies ${KID} --publish ${policy} --material`);
    const hook = await mine.json(`webhooks add ${KID} https://hook.example/secret-path`);
    await mine.json(`webhooks remove ${KID} ${String(hook['id'])} --yes`);
    for (const value of ['true', 'false']) await mine.json(`tenants set ${KID} review.fourEyes=${value}`);
    expect(await actionsOf(mine)).toEqual([
      'apikey.created',
      'apikey.revoked',
      'key.rotated',
      'key.destroyed',
      'key.rotated',
      'purpose.defined',
      'policy.published',
      'webhook.added',
      'webhook.removed',
      'tenant.set',
      'tenant.set',
    ]);
    const rows = await mine.json<Row[]>(`audit ${KID}`);
    expect(rows.slice(0, 2).map(({ detail }) => detail)).toEqual([
      { key: 'review.fourEyes', from: true, to: false },
      { key: 'review.fourEyes', from: false, to: true },
    ]);
    expect(new Set(rows.map(({ role, actor }) => `${role} ${actor}`)).size).toBe(1);
    expect(rows[0]).toMatchObject({
      role: 'operator',
      actor: expect.stringMatching(/^[\w-]{43}$/) as string,
    });
    expect(await mine.json('audit other')).toEqual([]);
    const text = JSON.stringify(rows);
    for (const secret of [key['key'], shared['key'], hook['secret'], 'secret-path'])
      expect(text).not.toContain(String(secret));
    expect(await mine.json(`consent verify ${KID}`)).toMatchObject({ ok: true });
  });

  it('what concerns the installation is in every tenant’s log, under its own reference', async () => {
    const mine = await createOwn(TENANTS);
    const directory = tempDir('backup');
    const jwks = join(directory, 'jwks.json');
    const x = Buffer.alloc(32, 7).toString('base64url');
    writeFileSync(jwks, JSON.stringify({ keys: [{ kty: 'OKP', crv: 'Ed25519', x }] }));
    await mine.json(`agents add https://agent.example --jwks ${jwks}`);
    await mine.json('agents remove https://agent.example --yes');
    expect(await mine.json('agents list')).toEqual([]);
    await mine.json(`backup ${join(directory, 'one.backup')}`);
    await mine.json('keys rewrap --yes');
    const acts = ['agent.added', 'agent.removed', 'backup.made', 'key.rotated'];
    expect([await actionsOf(mine), await actionsOf(mine, 'other')]).toEqual([acts, acts]);
    const actors = await mine.query('SELECT DISTINCT kid, actor FROM audit_log');
    expect([actors.length, new Set(actors.map(({ actor }) => actor)).size]).toEqual([2, 2]);
  });

  it('a tenant whose root secret is damaged stops no backup, and its log has the row', async () => {
    const mine = await createOwn(TENANTS);
    await mine.query(
      "UPDATE tenant_secrets SET wrapped = 'damaged' WHERE kid = 'other' AND purpose = 'root'",
    );
    await mine.json(`backup ${join(tempDir('backup'), 'one.backup')}`);
    const act = { role: 'operator', action: 'backup.made' };
    const actor = expect.stringMatching(/^[\w-]{43}$/) as string;
    expect(await mine.query('SELECT kid, role, actor, action FROM audit_log ORDER BY kid')).toEqual([
      { kid: KID, actor, ...act },
      { kid: 'other', actor: 'unknown', ...act },
    ]);
  });

  it('a restore is told in what it restored, and a dry run nowhere', async () => {
    const mine = await createOwn();
    const file = join(tempDir('backup'), 'one.backup');
    await mine.json(`backup ${file}`);
    await mine.json(`tenants set ${KID} review.fourEyes=true`);
    await mine.json(`restore ${file} --dry-run`);
    expect(await actionsOf(mine)).toEqual(['backup.made', 'tenant.set']);
    await mine.json(`restore ${file} --yes`);
    const rows = await mine.json<Row[]>(`audit ${KID}`);
    expect(rows).toMatchObject([{ role: 'operator', action: 'restore.done' }]);
    expect(Object.keys(rows[0]?.detail ?? {})).toEqual(['backup', 'gpd']);
  });
});
