import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createIngestAnswer, createSealKey, GRANTED, pubKeyBody } from './support/answers.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';
import { type Site, startSite } from './support/site.ts';

const KID = 'shop';

/** Counts every door through which a collector or a request could go. */
const SPIES = `window.calls = [];
const spy = (owner, name) => {
  const was = owner[name];
  owner[name] = function (...args) { calls.push(name); return new.target ? Reflect.construct(was, args) : was.apply(this, args) };
};
const spyGet = (owner, name) => {
  const { get } = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { get() { calls.push(name); return get.call(this) } });
};
spy(HTMLCanvasElement.prototype, 'getContext');
spy(Document.prototype, 'createElement');
for (const name of ['fetch', 'matchMedia', 'Worker', 'OfflineAudioContext', 'addEventListener']) spy(window, name);
spy(SubtleCrypto.prototype, 'digest');
spy(crypto, 'getRandomValues');
for (const name of ['userAgent', 'platform', 'webdriver', 'languages', 'plugins']) spyGet(Navigator.prototype, name);
for (const name of ['width', 'colorDepth']) spyGet(Screen.prototype, name);`;

const GPC_ON = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })";

const receipt = (fields: object): string => JSON.stringify({ ...GRANTED, ...fields });

const CASES: readonly (readonly [what: string, setup: string, consent: string, reason: string])[] = [
  ['no receipt', '', 'null', 'consent-missing'],
  ['a receipt of another kind', '', '"yes"', 'consent-missing'],
  ['a receipt without the purpose', '', receipt({ purposes: ['analytics'] }), 'consent-missing'],
  ['a receipt without a version', '', receipt({ version: undefined }), 'consent-missing'],
  ['a function that grants nothing', '', 'async () => null', 'consent-missing'],
  ['a function that fails', '', "() => { throw new Error('banner') }", 'consent-missing'],
  ['a receipt under GPC', '', receipt({ gpc: true }), 'gpc'],
  ['a browser that sends GPC', GPC_ON, receipt({}), 'gpc'],
];

describeInChromium('browser/gate', () => {
  const { openTab } = useTabs();
  let site: Site;

  beforeAll(async () => {
    const key = createSealKey();
    site = await startSite({
      gpd: ({ path }) =>
        path.startsWith('/_fp/pubkey')
          ? { status: 200, body: pubKeyBody(KID, key) }
          : createIngestAnswer('ok'),
    });
  });
  afterAll(() => site?.close());
  beforeEach(() => {
    site.exchanges.length = 0;
  });

  async function inPage(setup: string, source: string): Promise<{ result: unknown; calls: string[] }> {
    const page = await openTab(site.origin, {}, `${setup};${SPIES}`);
    const result = await page.evaluate(`import('/v1/agent.js').then((agent) => ${source})`);
    return { result, calls: (await page.evaluate('calls')) as string[] };
  }

  const requestedPaths = (): string[] =>
    site.exchanges.map(({ path }) => path).filter((path) => path !== '/');

  describe.each(CASES)('with %s', (_what, setup, consent, reason) => {
    it('refuses by a value, reads nothing and asks the server nothing', async () => {
      const { result, calls } = await inPage(setup, `agent.identify({ kid: '${KID}', consent: ${consent} })`);
      expect(result).toMatchObject({ sent: false, reason, message: expect.stringContaining('nothing') });
      expect(calls).toEqual([]);
      expect(requestedPaths()).toEqual(['/v1/agent.js']);
    });
  });

  it('keeps collect and observeInput behind the same gate', async () => {
    const { result, calls } = await inPage(
      GPC_ON,
      `Promise.all([agent.collect(${receipt({})}), agent.observeInput(${receipt({})})])`,
    );
    expect(result).toEqual([null, null]);
    expect(calls).toEqual([]);
    expect(requestedPaths()).toEqual(['/v1/agent.js']);
  });

  it('opens for the purpose, which shows that the spies see', async () => {
    const { result, calls } = await inPage('', `agent.identify({ kid: '${KID}', consent: ${receipt({})} })`);
    expect(result).toMatchObject({ sent: true, status: 200, response: { reason: 'ok' } });
    const doors = ['getContext', 'createElement', 'fetch', 'matchMedia', 'Worker', 'OfflineAudioContext'];
    const values = ['digest', 'getRandomValues', 'userAgent', 'platform', 'webdriver', 'languages'];
    const sizes = ['plugins', 'width', 'colorDepth'];
    expect(new Set(calls)).toEqual(new Set([...doors, ...values, ...sizes]));
    expect(requestedPaths()).toEqual(
      expect.arrayContaining([`/_fp/pubkey?kid=${KID}`, '/v1/agent-worker.js', '/_fp/i/v1']),
    );
  });
});
