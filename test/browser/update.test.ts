import { expect, it } from 'vitest';
import { FONTS } from '../../src/agent/collect/fonts.ts';
import { describeBanner } from './support/banner-suite.ts';

/** The built agent on a real page: a visit is judged at load and after the person has pressed something (ADR 0054). */

interface Answer {
  readonly sent: boolean;
  readonly cause?: string;
  readonly reason?: string;
  readonly response?: { readonly reason: string; readonly requestId: string; readonly visitorId: string };
}

/**
 * A page brings its own fonts and libraries along; the visitor id is of the device (signals.md, section 4).
 * Each has an effect that the page itself sees: the expression is true before it, and false after it.
 */
const BROUGHT: readonly (readonly [what: string, untouched: string, bring: string])[] = [
  [
    'web fonts under the names of system fonts',
    `(() => {
      const context = document.createElement('canvas').getContext('2d');
      const width = (font) => ((context.font = font), context.measureText('mwiIO&07').width);
      return width('64px "Cutive Mono", serif') === width('64px serif');
    })()`,
    `Promise.all(${JSON.stringify(FONTS)}.map((name) => {
      const local = ['DejaVu Sans Mono', 'Liberation Mono', 'Noto Sans Mono', 'Courier New'];
      const face = new FontFace(name, local.map((font) => 'local("' + font + '")').join());
      document.fonts.add(face);
      return face.load();
    }))`,
  ],
  ['a library that mends Math', 'Math.expm1(1) !== 1', '(Math.expm1 = () => 1)'],
];

describeBanner('update', [], (at, name) => {
  /** A page whose agent can be asked, and a person who accepted there. */
  async function enter(): Promise<void> {
    await at.enter();
    await at.page.goto(at.shop.page());
    await at.banner.answer('accept');
  }
  const ask = (call: string): Promise<Answer> =>
    at.page.evaluate(
      `import('http://localhost:${at.shop.api.gpd.port}/v1/agent.js').then(async (agent) => agent.${call})`,
    ) as Promise<Answer>;
  const RECEIPT = 'await window.gpd.consent.receipt()';
  const identify = (options = ''): Promise<Answer> =>
    ask(`identify({ kid: 'shop', consent: async () => ${RECEIPT}, workerUrl: null, ${options} })`);
  const decision = async ({ response }: Answer): Promise<{ rules: { id: string }[] }> =>
    (await at.shop.api.get(`/v1/decisions/${response?.requestId}`)).json() as never;
  const ruleIds = async (answer: Answer) => (await decision(answer)).rules.map(({ id }) => id);
  const OK = { sent: true, response: { reason: 'ok' } };

  it('the second bundle carries the input since, and the first decision names the second', async () => {
    await enter();
    expect(await ask('update()')).toMatchObject({ sent: false, cause: 'nothing-to-update' });
    const first = await identify();
    expect(first).toMatchObject(OK);
    expect(await ask(`observeInput(${RECEIPT}) !== null`)).toBe(true);
    await at.page.mouse.move(40, 40);
    await at.page.mouse.move(200, 120, { steps: 6 });
    await at.page.mouse.click(200, 120);
    const { input } = (await ask(`collect(${RECEIPT})`)) as { input?: Record<string, unknown> };
    expect(input).toMatchObject({ downUpMs: expect.any(Number), forceless: expect.any(Boolean) });
    expect(input?.['moves']).toBeGreaterThan(0);

    const second = await ask('update()');
    expect(second).toMatchObject(OK);
    expect(second.response?.visitorId).toBe(first.response?.visitorId);
    expect(await decision(first)).toMatchObject({ supersededBy: second.response?.requestId });
    expect(await decision(second)).not.toHaveProperty('supersededBy');
    // Puppeteer's press has no force in Chromium, which is what the first bundle could not know.
    expect(await ruleIds(first)).not.toContain('A8');
    expect((await ruleIds(second)).includes('A8')).toBe(name === 'chromium');

    const third = await ask('update()');
    expect(await decision(second)).toMatchObject({ supersededBy: third.response?.requestId });
  });

  it('sends nothing once the person has taken the consent back', async () => {
    await enter();
    const first = await identify();
    await at.page.evaluate('window.gpd.consent.withdraw()');
    expect(await ask('update()')).toMatchObject({ sent: false, reason: 'consent-missing' });
    expect(await decision(first)).not.toHaveProperty('supersededBy');
  });

  it('update reports a session that another tab has taken over, and identify starts again', async () => {
    await enter();
    const first = await identify();
    const { page } = at;
    at.page = await at.visitor.tab();
    await at.page.goto(page.url());
    expect(await identify()).toMatchObject(OK);
    at.page = page;
    expect(await ask('update()')).toMatchObject({ cause: 'refused', status: 401, error: 'unauthenticated' });
    expect(await decision(first)).not.toHaveProperty('supersededBy');
    expect(await identify()).toMatchObject(OK);
    expect(await ask('update()')).toMatchObject(OK);
  });

  it('a visit is bound to what the page names, and an update to what it names then', async () => {
    await enter();
    const context = async (answer: Answer) => ((await decision(answer)) as { context?: string }).context;
    expect(await context(await identify("context: 'order-1'"))).toBe('order-1');
    expect(await context(await ask('update()'))).toBe('order-1');
    expect(await context(await ask("update({ context: 'order-2' })"))).toBe('order-2');
    expect(await context(await identify('context: 17'))).toBe('17');
    expect(await context(await identify())).toBeUndefined();
    const refused = { sent: false, reason: 'unavailable', cause: 'context' };
    for (const bad of ["''", "'my order'", `'${'x'.repeat(65)}'`])
      expect(await identify(`context: ${bad}`)).toMatchObject(refused);
  });

  it.each(BROUGHT)('%s: the same id', async (_what, untouched, bring) => {
    await enter();
    expect(await at.page.evaluate(untouched)).toBe(true);
    const before = await identify();
    expect(before).toMatchObject(OK);
    await at.page.evaluate(`(async () => void (await ${bring}))()`);
    expect(await at.page.evaluate(untouched)).toBe(false);
    expect((await identify()).response?.visitorId).toBe(before.response?.visitorId);
  });
});
