import { load } from '@fingerprintjs/botd';

/**
 * The page of the matrix: consents by itself, asks gpd through the real agent, then asks the peer, and reports both.
 * gpd comes first: whatever the peer does to the page, it cannot disturb the agent.
 */

const LATE_MS = 6000;
const query = new URLSearchParams(location.search);
const run = query.get('run') ?? '';

interface Agent {
  identify(options: unknown): Promise<unknown>;
}

async function identify(): Promise<unknown> {
  const agent = (await import(new URL('/v1/agent.js', location.origin).href)) as Agent;
  const consent = {
    purposes: ['device-identification'],
    gpc: false,
    version: 1,
    issuedAt: Date.now(),
  };
  return agent.identify({ kid: query.get('kid') ?? '', consent, timeoutMs: 20_000 });
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
  const botd = await told(peer);
  await fetch(`/matrix/result?run=${encodeURIComponent(run)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ gpd, botd }),
  });
  document.title = 'done';
}

// Late runs load the page once more, so that what was set up meanwhile is there from the first byte.
if (query.has('late')) {
  query.delete('late');
  setTimeout(() => location.replace(`${location.pathname}?${query}`), LATE_MS);
} else {
  void report();
}
