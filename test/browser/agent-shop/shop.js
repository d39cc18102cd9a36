// @ts-nocheck: a shop has no types.
const gpd = document.querySelector('script[data-gpd]').dataset.gpd;

const login = await fetch('/gpd-session', { method: 'POST' });
if (login.ok) await window.gpd.consent.join((await login.json()).token);

window.gpd.consent.on('change', ({ granted }) => {
  if (!granted.includes('offers')) document.getElementById('offers')?.remove();
  if (window.counted && !granted.includes('analytics')) location.reload();
});

let requestId = null;
async function order() {
  const answer = await fetch('/order', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ requestId }),
  });
  document.querySelector('output').textContent = `Order ${(await answer.json()).order}`;
}
document.getElementById('order').addEventListener('click', () => void order());

const { identify } = await import(`${gpd}/v1/agent.js`);
// It waits for the choice, so nothing of the page may wait for it.
const result = await identify({
  kid: 'shop',
  consent: () => window.gpd.consent.receipt(),
  workerUrl: '/agent-worker.js',
});
if (result.sent) requestId = result.response.requestId;
document.documentElement.dataset.visit = result.sent ? (result.incomplete ?? 'whole') : result.cause;
