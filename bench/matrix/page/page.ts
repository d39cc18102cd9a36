import { load } from '@fingerprintjs/botd';

/**
 * The page of the matrix: consents by itself, asks gpd through the real agent, then asks the peer, and reports both.
 * gpd comes first: whatever the peer does to the page, it cannot disturb the agent.
 */

const LATE_MS = 6000;
const PRESS_MS = 25_000;
/** The release comes after the click. */
const REST_MS = 200;
const query = new URLSearchParams(location.search);
const run = query.get('run') ?? '';

interface Agent {
  identify(options: unknown): Promise<unknown>;
  observeInput(consent: unknown): unknown;
  update(): Promise<unknown>;
}

const theAgent = async (): Promise<Agent> =>
  (await import(new URL('/v1/agent.js', location.origin).href)) as Agent;

async function identify(): Promise<unknown> {
  const agent = await theAgent();
  const consent = {
    purposes: ['device-identification'],
    gpc: false,
    version: 1,
    issuedAt: Date.now(),
  };
  if (query.has('press')) agent.observeInput(consent);
  return agent.identify({ kid: query.get('kid') ?? '', consent, timeoutMs: 20_000 });
}

/** As large as the page, so that a hand finds it. */
function cover(element: HTMLElement): void {
  element.id = 'press';
  element.textContent = 'Press';
  element.style.cssText = 'position:fixed;inset:0;width:100%;height:100%';
}

async function tellReady(): Promise<void> {
  document.title = 'ready';
  await fetch(`/matrix/ready?run=${encodeURIComponent(run)}`);
}

/** A link, or the button of a form, to the page that reports. */
async function leadOn(way: string): Promise<void> {
  query.delete('follow');
  const link = document.createElement('a');
  link.href = `${location.pathname}?${query}`;
  const form = document.createElement('form');
  const button = form.appendChild(document.createElement('button'));
  for (const [name, value] of query) {
    const field = document.createElement('input');
    Object.assign(field, { type: 'hidden', name, value });
    form.append(field);
  }
  cover(way === 'link' ? link : button);
  document.body.append(way === 'link' ? link : form);
  await tellReady();
}

/** A button; then gpd is asked once more. */
async function afterPress(): Promise<unknown> {
  const button = document.createElement('button');
  cover(button);
  const pressed = new Promise((resolve, reject) => {
    button.addEventListener('click', resolve, { once: true });
    setTimeout(() => reject(new Error('nobody pressed')), PRESS_MS);
  });
  document.body.append(button);
  await tellReady();
  await pressed;
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  return (await theAgent()).update();
}

async function peer(): Promise<unknown> {
  const detector = await load({ monitoring: false });
  return detector.detect();
}

/** Failures are reported as well: a run that only times out tells nothing. */
async function told(what: () => Promise<unknown>): Promise<unknown> {
  try {
    return await what();
  } catch (error) {
    return { failed: String(error) };
  }
}

async function report(): Promise<void> {
  const gpd = await told(identify);
  const later = query.has('press') ? await told(afterPress) : undefined;
  const botd = await told(peer);
  await fetch(`/matrix/result?run=${encodeURIComponent(run)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ gpd, botd, later }),
  });
  document.title = 'done';
}

// Late runs load the page once more, so that what was set up meanwhile is there from the first byte.
if (query.has('late')) {
  query.delete('late');
  setTimeout(() => location.replace(`${location.pathname}?${query}`), LATE_MS);
} else {
  const way = query.get('follow');
  void (way === null ? report() : leadOn(way));
}
