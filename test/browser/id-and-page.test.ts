import { expect, it } from 'vitest';
import { FONTS } from '../../src/agent/collect/fonts.ts';
import { describeWithTool } from '../support/tools.ts';
import { useBanner } from './support/banner-suite.ts';
import { type BrowserName, missingBrowser } from './support/drivers.ts';

/** A page brings its own fonts and libraries along; the visitor id is of the device (signals.md, section 4). */

/** Each has an effect that the page itself sees: the expression is true before it, and false after it. */
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

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeWithTool(`browser/id-and-page in ${name}`, missingBrowser(name), () => {
    const at = useBanner(name);

    async function visitorId(): Promise<string> {
      const call = `import('http://localhost:${at.shop.api.gpd.port}/v1/agent.js').then(({ identify }) =>
        identify({ kid: 'shop', consent: () => gpd.consent.receipt(), workerUrl: null }))`;
      const { response } = (await at.page.evaluate(call)) as { response: { visitorId: string } };
      expect(response.visitorId).toMatch(/^[\w-]{22}$/);
      return response.visitorId;
    }

    it.each(BROUGHT)('%s: the same id', async (_what, untouched, bring) => {
      await at.enter();
      await at.page.goto(at.shop.page());
      await at.banner.press('accept');
      await at.banner.waitFor('reopen');
      expect(await at.page.evaluate(untouched)).toBe(true);
      const before = await visitorId();
      await at.page.evaluate(`(async () => void (await ${bring}))()`);
      expect(await at.page.evaluate(untouched)).toBe(false);
      expect(await visitorId()).toBe(before);
    });
  });
}
