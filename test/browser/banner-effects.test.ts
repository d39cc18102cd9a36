import { expect, it } from 'vitest';
import { describeBanner } from './support/banner-suite.ts';
import { blocksOf, readDocs } from './support/pasted.ts';
import { AGENT, ANALYTICS } from './support/shop.ts';

/**
 * A page of components, which mount, unmount and mount again (React's StrictMode), and read the state whenever they render: `ready`,
 * `state()` and `change` tell them the same. The package of React is not among the dependencies, so the page does what its hooks do.
 */

/** `useEffect`: each mount subscribes, each unmount stops. */
const COMPONENTS = `window.effects = [];
  window.mount = (name, event = 'change', listen = ({ granted }) => effects.push(name + ' ' + granted.length)) =>
    gpd.consent.on(event, listen);`;

describeBanner('banner on a page of components', [], (at) => {
  async function open(): Promise<void> {
    await at.enter(COMPONENTS);
    await at.page.goto(at.shop.page());
    await at.banner.waitFor('accept');
    await at.banner.state();
  }
  const run = (script: string): Promise<unknown> => at.page.evaluate(script);
  const heard = (): Promise<unknown> => run('effects');

  it('state() is the same object until something changes, so that no component renders for ever', async () => {
    await open();
    expect(await run('gpd.consent.state() === gpd.consent.state()')).toBe(true);
    await run('window.before = gpd.consent.state(); 0');
    await at.banner.answer('accept');
    expect(await run('[gpd.consent.state() === before, before.granted.length]')).toEqual([false, 0]);
    expect(await run('gpd.consent.ready.then((state) => state === gpd.consent.state())')).toBe(true);
  });

  it('a listener of change reads the same from state() and ready', async () => {
    await open();
    await run(`mount('', 'change', async ({ granted, phase, recorded }) => {
      const now = gpd.consent.state(); const later = await gpd.consent.ready;
      effects.push([now, later].map((one) => one.granted.join() === granted.join() && one.phase === phase), recorded); }); 0`);
    await at.banner.answer('accept');
    await run('gpd.consent.withdraw()');
    expect(await heard()).toEqual([[true, true], true, [true, true], false]);
  });

  it('the lines of docs/banner.md reload the page when something ends, and not before', async () => {
    await open();
    const [lines = ''] = blocksOf(readDocs('banner.md'), 'js').filter((code) =>
      code.includes('location.reload'),
    );
    const paste = (): Promise<unknown> => run(`window.isSame = true; { ${lines} } 0`);
    const isSame = () => run('window.isSame === true').catch(() => null);
    await paste();
    await at.banner.answer('accept');
    expect(await isSame()).toBe(true);
    await run('void gpd.consent.withdraw(gpd.consent.state().granted[0]); 0').catch(() => null);
    await expect.poll(isSame).toBe(false);
    // A page that opens with a grant knows from the start what may end.
    await at.banner.state();
    await paste();
    await run('void gpd.consent.withdraw(); 0').catch(() => null);
    await expect.poll(isSame).toBe(false);
  });

  it('mounted, unmounted and mounted again: each change is heard once', async () => {
    await open();
    await run("mount('a')(); mount('a'); 0");
    await at.banner.answer('accept');
    expect(await heard()).toEqual(['a 2']);
  });

  it('two components with one listener: the end of the one leaves the other', async () => {
    await open();
    await run("{ const listen = () => effects.push('shared'); mount('', 'change', listen)(); }");
    await run(
      "{ const listen = () => effects.push('shared'); const stop = mount('', 'change', listen); mount('', 'change', listen); stop(); }",
    );
    await at.banner.answer('accept');
    expect(await heard()).toEqual(['shared']);
  });

  it('a component that subscribes again while it hears a change hears it once', async () => {
    await open();
    await run(`{ let stop; const again = ({ granted }) => { effects.push(granted.length); stop();
      if (effects.length < 9) stop = mount('', 'change', (state) => again(state)); };
      stop = mount('', 'change', again); }`);
    await at.banner.answer('accept');
    expect(await heard()).toEqual([2]);
    await run('gpd.consent.withdraw()');
    expect(await heard()).toEqual([2, 0]);
  });

  it('a component that another one unmounts on a change hears nothing of it', async () => {
    await open();
    await run("{ let stop; mount('', 'change', () => stop()); stop = mount('b'); }");
    await at.banner.answer('accept');
    expect(await heard()).toEqual([]);
  });

  it('mounted after a client-side navigation: ready, state() and a late listener have what was chosen before', async () => {
    await open();
    await at.banner.answer('accept');
    await run(
      "history.pushState({}, '', '/page-elsewhere'); document.querySelector('main').replaceChildren(); 0",
    );
    await run("mount('late', 'ready'); mount('gone', 'ready')(); 0");
    expect(await run('gpd.consent.ready.then(({ granted }) => granted)')).toEqual([ANALYTICS, AGENT]);
    expect(await run('gpd.consent.state().granted')).toEqual([ANALYTICS, AGENT]);
    expect(await heard()).toEqual(['late 2']);
  });

  it('mounted by a listener of ready: heard once', async () => {
    await at.enter(
      `${COMPONENTS} addEventListener('DOMContentLoaded', () => mount('', 'ready', () => mount('inner', 'ready')));`,
    );
    await at.page.goto(at.shop.page());
    await at.banner.state();
    expect(await heard()).toEqual(['inner 0']);
  });

  it('mounted before the first state: ready is heard once', async () => {
    await at.enter(
      `${COMPONENTS} addEventListener('DOMContentLoaded', () => { mount('early', 'ready')(); mount('early', 'ready'); });`,
    );
    await at.page.goto(at.shop.page());
    await at.banner.state();
    expect(await heard()).toEqual(['early 0']);
  });
});
