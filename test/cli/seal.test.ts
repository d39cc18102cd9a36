import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sealedBundleSchema } from '../../src/schema/bundle.ts';
import { type Ran, runGpd } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { dumpDatabase } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { makePlaintext } from '../support/seal.ts';
import { type Gpd, initGpd, startGpd } from '../support/server.ts';

let gpd: Gpd;
beforeAll(async () => {
  const tenants = [
    { kid: KID, origins: [ORIGIN] },
    { kid: 'other', origins: [] },
  ];
  gpd = await startGpd({ tenants });
  await gpd.json(['keys', 'symmetric', KID]);
});
afterAll(() => gpd.stop());

const seal = (input: string, ...args: string[]): Promise<Ran> => gpd.cli(['seal', ...args], { input });
/** The plaintext of contract section 2 without the fields that `gpd seal` adds. */
const basePlaintext = (): Record<string, unknown> => {
  const { nonce: _nonce, clientTs: _clientTs, ...rest } = makePlaintext();
  return rest;
};

describe.concurrent('gpd seal', () => {
  it('seals standard input with the key of the database, nonce and clientTs filled in', async () => {
    const ran = await seal(JSON.stringify(basePlaintext()), KID);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const bundle = sealedBundleSchema.parse(JSON.parse(ran.stdout));
    expect(bundle.epk).toBeDefined();
    expect(ran.stdout.endsWith('}\n')).toBe(true);
    expectCore(await post(gpd.url, ran.stdout), 'ok');
  });

  it('says the same with --json', async () => {
    const ran = await seal(JSON.stringify(basePlaintext()), KID, '--json');
    expect(sealedBundleSchema.safeParse(JSON.parse(ran.stdout)).success).toBe(true);
  });

  it('keeps a nonce and a clientTs that are given', async () => {
    const input = JSON.stringify(makePlaintext());
    const [one, two] = [await seal(input, KID), await seal(input, KID)];
    expect(one.stdout).not.toBe(two.stdout);
    expectCore(await post(gpd.url, one.stdout), 'ok');
    expectCore(await post(gpd.url, two.stdout), 'replay');
    const staleBundle = await seal(JSON.stringify(makePlaintext({ clientTs: 5 })), KID);
    expectCore(await post(gpd.url, staleBundle.stdout), 'stale');
  });

  it('seals what is wrong as it is, so that a refusal can be tried out', async () => {
    const ran = await seal(JSON.stringify({ ...basePlaintext(), surplus: 1 }), KID);
    expectCore(await post(gpd.url, ran.stdout), 'decrypt-failed');
  });

  it('--url takes the key from a server, without a database', async () => {
    const args = ['seal', KID, '--url', gpd.url];
    const ran = await runGpd(args, { input: JSON.stringify(basePlaintext()), env: {} });
    expect(ran.code).toBe(0);
    expectCore(await post(gpd.url, ran.stdout), 'ok');
  });

  it('--symmetric seals the legacy form, without an epk', async () => {
    const ran = await seal(JSON.stringify(basePlaintext()), KID, '--symmetric');
    const bundle = sealedBundleSchema.parse(JSON.parse(ran.stdout));
    expect(Object.keys(bundle).sort()).toEqual(['ct', 'iv', 'kid']);
    expectCore(await post(gpd.url, ran.stdout), 'ok');
  });

  it('writes nothing', async () => {
    const { dataDir } = await initGpd();
    const before = await dumpDatabase(dataDir);
    const env = { GPD_DATA_DIR: dataDir };
    await runGpd(['seal', KID], { env, input: JSON.stringify(basePlaintext()) });
    expect(await dumpDatabase(dataDir)).toEqual(before);
  });

  it.each([
    [2, 'hello', [KID]],
    [2, '', [KID]],
    [2, '[]', [KID]],
    [2, '{}', ['a|b']],
    [2, '{}', [KID, '--url', 'nowhere']],
    [2, '{}', [KID, '--url', 'http://127.0.0.1:1', '--symmetric']],
    [3, '{}', ['nobody']],
    [3, '{}', ['nobody', '--symmetric']],
    [3, '{}', ['other', '--symmetric']],
    [1, '{}', [KID, '--url', 'http://127.0.0.1:1']],
  ])('%i for %j and seal %j', async (code, input, args) => {
    const ran = await seal(input, ...args);
    expect(ran).toMatchObject({ code, stdout: '' });
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });

  it('3 for a kid that the server does not know', async () => {
    expect(await seal('{}', 'nobody', '--url', gpd.url)).toMatchObject({ code: 3, stdout: '' });
  });
});
