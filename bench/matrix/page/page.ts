/** The page of the matrix: it consents by itself, asks gpd through the real agent and reports the answer. */

const LATE_MS = 6000;
const PRESS_MS = 25_000;
/** The page asks again this long after the click, because the release of the button comes later. */
const REST_MS = 200;
const query = new URLSearchParams(location.search);
const run = query.get('run') ?? '';

interface Agent {
  identify(options: unknown): Promise<unknown>;
  observeInput(consent: unknown): unknown;
  update(): Promise<unknown>;
}

const loadAgent = async (): Promise<Agent> =>
  (await import(new URL('/v1/agent.js', location.origin).href)) as Agent;

async function identify(): Promise<unknown> {
  const agent = await loadAgent();
  const consent = {
    purposes: ['device-identification'],
    gpc: false,
    version: 1,
    issuedAt: Date.now(),
  };
  if (query.has('press')) agent.observeInput(consent);
  return agent.identify({ kid: query.get('kid') ?? '', consent, timeoutMs: 20_000 });
}

/** Makes the button as large as the page, so that a press anywhere hits it. */
function cover(element: HTMLElement): void {
  element.id = 'press';
  element.textContent = 'Press';
  element.style.cssText = 'position:fixed;inset:0;width:100%;height:100%';
}

async function tellReady(): Promise<void> {
  document.title = 'ready';
  await fetch(`/matrix/ready?run=${encodeURIComponent(run)}`);
}

/** Shows the button, waits for the press and asks gpd again. */
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
  return (await loadAgent()).update();
}

/** Reports failures as well, because a timeout of the run would not show the cause. */
async function resultOrFailure(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    return { failed: String(error) };
  }
}

async function report(): Promise<void> {
  const gpd = await resultOrFailure(identify);
  const later = query.has('press') ? await resultOrFailure(afterPress) : undefined;
  await fetch(`/matrix/result?run=${encodeURIComponent(run)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ gpd, later }),
  });
  document.title = 'done';
}

// Late runs load the page a second time, so that a setup in the browser applies from the first byte.
if (query.has('late')) {
  query.delete('late');
  setTimeout(() => location.replace(`${location.pathname}?${query}`), LATE_MS);
} else {
  void report();
}
