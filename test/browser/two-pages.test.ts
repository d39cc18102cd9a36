import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { attachByCdp } from '../../bench/matrix/drivers/cdp.ts';
import { type Display, startDisplay } from '../../bench/matrix/lib/display.ts';
import { missingPrograms } from '../../bench/matrix/lib/programs.ts';
import { tempDir } from '../support/command.ts';
import { describeWithTool } from '../support/tools.ts';
import { type Shop, startShop } from './support/shop.ts';

/** A person who accepts on one page and goes on to the next: Chromium counts the next page as used before anything is pressed there. */

/** A visible Chromium that looks undriven: the protocol only moves the mouse and reads, without enabling a domain. */
interface Person {
  goto(url: string): Promise<void>;
  /** Moves to what the expression finds and presses it, with force. */
  press(element: string): Promise<void>;
  /** The value of an expression in the page; no activation comes with it, unless it is asked for. */
  read(expression: string, more?: { readonly userGesture?: boolean }): Promise<unknown>;
  /** Until the expression is true: pages come and go meanwhile. */
  until(expression: string): Promise<void>;
  /** Opens another window, which takes the focus, as undocked developer tools do. */
  openWindow(): Promise<void>;
  leave(): Promise<void>;
}

/** A person's browser has no protocol, which alone would set the WebDriver flag. */
const UNDRIVEN = '--disable-blink-features=AutomationControlled';
const POLL_MS = 50;
const WAIT_MS = 20_000;
const STEPS = 6;

async function startPerson(display: Display, flags: readonly string[] = []): Promise<Person> {
  const undos: (() => unknown)[] = [];
  const page = await attachByCdp(
    {
      directory: tempDir('person'),
      environment: { ...process.env, DISPLAY: display.name },
      defer: (undo) => undos.push(undo),
    },
    { flags: [UNDRIVEN, ...flags] },
  );
  const read: Person['read'] = async (expression, options) => {
    const parameters = { awaitPromise: true, returnByValue: true, ...options };
    const answer = await page('Runtime.evaluate', { expression, ...parameters });
    return (answer as { result?: { value?: unknown } }).result?.value;
  };
  const until = async (expression: string): Promise<void> => {
    const deadline = Date.now() + WAIT_MS;
    while ((await read(`(async () => Boolean(await (${expression})))()`)) !== true) {
      if (Date.now() > deadline) throw new Error(`it never came true: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  const mouse = (type: string, x: number, y: number, fields = {}) =>
    page('Input.dispatchMouseEvent', { type, x, y, ...fields });
  return {
    read,
    until,
    async goto(url) {
      await page('Page.navigate', { url });
      await until(`location.href === ${JSON.stringify(url)} && document.readyState === 'complete'`);
    },
    async press(element) {
      await until(`${element}?.getClientRects().length`);
      const { x, y, width, height } = (await read(
        `(${element}).getBoundingClientRect().toJSON()`,
      )) as DOMRectReadOnly;
      const at = [Math.round(x + width / 2), Math.round(y + height / 2)] as const;
      for (let step = STEPS; step >= 0; step -= 1)
        await mouse('mouseMoved', at[0] + step * 9, at[1] - step * 7);
      const button = { button: 'left', clickCount: 1, force: 0.5 };
      await mouse('mousePressed', ...at, { ...button, buttons: 1 });
      await mouse('mouseReleased', ...at, button);
    },
    async openWindow() {
      await page('Target.createTarget', { url: 'about:blank', newWindow: true });
      await until('!document.hasFocus()');
    },
    async leave() {
      for (const undo of undos.reverse()) await undo();
    },
  };
}

interface Judged {
  readonly class: string;
  readonly rules: readonly string[];
}

/** A desktop that is reached from elsewhere has no mouse of its own: the rule M5. */
const REMOTE =
  '--blink-settings=primaryPointerType=1,availablePointerTypes=1,primaryHoverType=1,availableHoverTypes=1';
const NEXT = "document.querySelector('#next')";
const ACCEPT =
  "document.querySelector('gpd-consent')?.shadowRoot?.querySelector('[data-testid=\"consent-accept\"]')";

const HEADING = "document.querySelector('h1')";
const OBSERVE = 'observeInput(await gpd.consent.receipt()) !== null';
const IDENTIFY = "identify({ kid: 'shop', consent: () => gpd.consent.receipt(), workerUrl: null })";

const WAYS: Readonly<Record<string, (url: string) => string>> = {
  'a link': (url) => `<a id="next" href="${url}">Next</a>`,
  'a form': (url) => `<form action="${url}"><button id="next">Next</button></form>`,
  'a form that is posted': (url) =>
    `<form action="${url}" method="post"><button id="next">Next</button></form>`,
};

describeWithTool('browser/two-pages', missingPrograms(['xvfb', 'chromium']), () => {
  let display: Display;
  let shop: Shop;
  let person: Person;

  beforeAll(async () => {
    [display, shop] = await Promise.all([startDisplay(), startShop()]);
  });
  afterAll(async () => {
    await display?.stop();
    await shop?.close();
  });
  afterEach(() => person?.leave());

  const call = (expression: string): Promise<unknown> =>
    person.read(
      `import('http://localhost:${shop.api.gpd.port}/v1/agent.js').then(async (agent) => agent.${expression})`,
    );
  async function judged(expression: string): Promise<Judged> {
    const { response } = (await call(expression)) as { response: { requestId: string } };
    const decision = (await shop.api.get(`/v1/decisions/${response.requestId}`)).json() as {
      class: string;
      rules: readonly { id: string }[];
    };
    const rules = decision.rules.map(({ id }) => id).filter((id) => !id.startsWith('W'));
    return { class: decision.class, rules };
  }

  /** Accepts on the first page, and goes on by hand. */
  async function goOn(body: (url: string) => string): Promise<Judged> {
    const second = shop.page();
    await person.goto(shop.page({ body: body(second) }));
    await person.press(ACCEPT);
    await person.until('gpd.consent.state().granted.length > 0');
    const first = await judged(IDENTIFY);
    await person.press(NEXT);
    await person.until(`location.href.split('?')[0] === '${second}' && document.readyState === 'complete'`);
    await person.until('gpd.consent.ready.then(() => true)');
    expect(await person.read('navigator.userActivation.hasBeenActive')).toBe(true);
    expect(await person.read("performance.eventCounts.get('pointerdown')")).toBe(0);
    return first;
  }
  async function ledger(): Promise<readonly string[]> {
    const events = await shop.api.events((await person.read('gpd.consent.state().principalId')) as string);
    return [...new Set(events.map(({ type }) => type))];
  }

  it.each(Object.keys(WAYS))('by %s: a person on both, and no doubt of the consent', async (way) => {
    person = await startPerson(display);
    const human = { class: 'human', rules: [] };
    expect(await goOn(WAYS[way]!)).toEqual(human);
    expect(await judged(IDENTIFY)).toEqual(human);
    await call(OBSERVE);
    await person.press(HEADING);
    expect(await judged('update()')).toEqual(human);
    expect(await ledger()).toEqual(['consent.granted']);
  });

  /** Drivers open the address directly, so no other site hands anything over. */
  async function comeByAddress(): Promise<void> {
    await person.goto(shop.page());
    await person.press(ACCEPT);
    await person.until('gpd.consent.state().granted.length > 0');
    await person.goto('about:blank');
    await person.goto(shop.page());
    await person.until('gpd.consent.ready.then(() => true)');
  }

  it.each<readonly [string, boolean, readonly string[]]>([
    ['a script that runs as if somebody had pressed', true, ['M12']],
    ['the first press of a person', false, []],
  ])('%s, after the first verdict: %s, told by update', async (_name, byScript, rules) => {
    person = await startPerson(display);
    await comeByAddress();
    expect(await judged(IDENTIFY)).toEqual({ class: 'human', rules: [] });
    await call(OBSERVE);
    if (byScript) await person.read('1', { userGesture: true });
    await person.press(HEADING);
    expect((await judged('update()')).rules).toEqual(rules);
  });

  // A driver's pointer gives the page the focus, so here nothing moves.
  it('such a script while another window has the focus, as developer tools have it: nothing', async () => {
    person = await startPerson(display);
    await comeByAddress();
    await judged(IDENTIFY);
    await person.openWindow();
    await person.read('1', { userGesture: true });
    expect((await judged('update()')).rules).toEqual([]);
  });

  it('such a script without any event of a pointer: told by update', async () => {
    person = await startPerson(display);
    await comeByAddress();
    await judged(IDENTIFY);
    await person.read('1', { userGesture: true });
    expect((await judged('update()')).rules).toEqual(['M12']);
  });

  it('by a link, on a remote desktop: unknown on both, and no doubt of the consent', async () => {
    person = await startPerson(display, [REMOTE]);
    const remote = { class: 'unknown', rules: ['M5', 'M9'] };
    expect(await goOn(WAYS['a link']!)).toEqual(remote);
    expect(await judged(IDENTIFY)).toEqual(remote);
    expect(await ledger()).toEqual(['consent.granted']);
  });
});
