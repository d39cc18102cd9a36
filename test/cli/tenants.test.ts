import { describe, expect, it } from 'vitest';
import { KID, ORIGIN } from '../support/constants.ts';
import { createOwn } from './support/own.ts';

interface Listed {
  readonly kid: string;
  readonly settings: Record<string, unknown>;
}

describe.concurrent('gpd tenants', () => {
  it('adds a tenant with one published seal key and the first purpose', async () => {
    const { json } = await createOwn();
    const origins = ['https://a.example', 'https://b.example'];
    const flags = origins.flatMap((origin) => ['--origin', origin]);
    const created = await json('tenants', 'add', 'shop-2', ...flags);
    expect(created).toMatchObject({ kid: 'shop-2', generation: 1 });
    expect(await json('keys', 'list', 'shop-2')).toMatchObject([
      { generation: 1, state: 'published', publicKey: created['publicKey'] },
    ]);
    expect(await json('consent', 'purposes', 'list', 'shop-2')).toMatchObject([
      { id: 'device-identification', gpc: 'opt-out' },
    ]);
    const listed = await json<Listed[]>('tenants', 'list');
    expect(listed.map(({ kid }) => kid).sort()).toEqual([KID, 'shop-2']);
    expect(listed.find(({ kid }) => kid === 'shop-2')?.settings['origins']).toEqual(origins);
  });

  it('shows the settings of one, and what it has', async () => {
    const { gpd, json } = await createOwn();
    await json('apikeys', 'create', KID, '--scope', 'secret', '--name', 'n');
    await json('keys', 'rotate', KID);
    expect(await json('tenants', 'show', KID)).toMatchObject({
      kid: KID,
      settings: { origins: [ORIGIN], 'retention.days': 90 },
      sealKey: 2,
      purposes: ['device-identification'],
      apiKeys: 1,
      webhooks: 0,
    });
    expect((await gpd('tenants', 'show', KID)).stdout).toMatch(/^retention\.days +90$/m);
    expect(await gpd('tenants', 'show', 'nobody')).toMatchObject({ code: 3, stdout: '' });
  });

  it('the only one may be left out; of several gpd picks none, and lists them', async () => {
    const { gpd, json } = await createOwn();
    expect(await json('keys', 'rotate')).toMatchObject({ kid: KID, generation: 2 });
    expect(await json('tenants', 'show')).toMatchObject({ kid: KID });
    await json('tenants', 'add', 'shop-2');
    const ran = await gpd('keys', 'rotate');
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toBe(`gpd: missing argument <kid>: name one of ${KID}, shop-2\n`);
  });

  it('lists them for a person in aligned columns', async () => {
    const { gpd } = await createOwn();
    const [head = '', first = ''] = (await gpd('tenants', 'list')).stdout.split('\n');
    expect(head).toMatch(/^KID\s+SINCE\s+ORIGINS$/);
    expect(first.indexOf(ORIGIN)).toBe(head.indexOf('ORIGINS'));
  });

  it('sets several settings at once, and keeps the others', async () => {
    const { json } = await createOwn();
    const setAll = async (...assignments: string[]): Promise<Record<string, unknown>> =>
      (await json<Listed>('tenants', 'set', KID, ...assignments)).settings;
    const several = await setAll('retention.days=30', 'notice.controller=Acme = GmbH', 'ledger.public=true');
    expect(several).toMatchObject({
      origins: [ORIGIN],
      'retention.days': 30,
      'notice.controller': 'Acme = GmbH',
      'ledger.public': true,
    });
    const origins = ['https://a.example', 'https://b.example'];
    expect(await setAll(`origins=${origins.join(',')}`)).toMatchObject({ origins, 'retention.days': 30 });
    expect(await setAll('origins=')).toMatchObject({ origins: [] });
  });

  it('starts with the defaults of the contract', async () => {
    const { json } = await createOwn();
    expect((await json<Listed[]>('tenants', 'list'))[0]?.settings).toMatchObject({
      'consent.basis': 'asserted',
      'transparency.retain': 'none',
      'ledger.public': false,
      'review.fourEyes': false,
      'retention.days': 90,
    });
  });

  it.each([
    [7, ['add', KID], /acme/],
    [2, ['add', 'a|b'], /kid/],
    [2, ['add', ''], /kid/],
    [2, ['add', '.'], /not \. or \.\./],
    [2, ['add', '..'], /not \. or \.\./],
    [2, ['add', 'k'.repeat(65)], /kid/],
    [2, ['add', 'ä'], /kid/],
    [2, ['add', 'x', '--origin', 'shop.example'], /--origin shop\.example: .*write https:\/\/shop\.example/],
    [2, ['add', 'x', '--origin', 'https://*.shop.example'], /--origin https:\/\/\*\.shop.* wildcard/],
    [2, ['set', KID, 'retention.day=30'], /retention\.days/],
    [2, ['set', KID, 'retention.days=x'], /retention\.days/],
    [2, ['set', KID, 'retention.days=0'], /retention\.days/],
    [2, ['set', KID, 'consent.basis=proven'], /consent\.basis/],
    [2, ['set', KID, 'ledger.public=yes'], /ledger\.public/],
    [
      2,
      ['set', KID, 'origins=https://a.example,shop.example'],
      /origins=shop\.example: .*write https:\/\/shop\.example/,
    ],
    [2, ['set', KID, 'origins=ftp://shop.example'], /origins=ftp:\/\/shop\.example: an origin is/],
    [2, ['set', KID, 'origins=https://*.shop.example'], /origins=https:\/\/\*\.shop.* wildcard/],
    [2, ['set', KID, 'notify.email=nobody'], /notify\.email=nobody: an e-mail address/],
    [2, ['set', KID, 'retention.days'], /retention\.days=/],
    [2, ['set', KID, 'retention.days=30', 'nope=1'], /nope/],
    [2, ['set', KID], /argument/],
    [3, ['set', 'nobody', 'retention.days=30'], /gpd tenants list/],
  ])('%i and nothing changed for tenants %j', async (code, args, named) => {
    const { gpd, dump } = await createOwn();
    const before = await dump();
    const ran = await gpd('tenants', ...args);
    expect(ran).toMatchObject({ code, stdout: '' });
    expect(ran.stderr).toMatch(named);
    expect(await dump()).toEqual(before);
  });
});
