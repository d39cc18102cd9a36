// @ts-nocheck: a shop has no types.

let requestId = null;
async function order() {
  const answer = await fetch('/order', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ requestId }),
  });
  document.querySelector('output').textContent = `Order ${(await answer.json()).order}`;
}
// First: the shop sells without gpd too.
document.getElementById('order').addEventListener('click', () => void order());

const { consent } = window.gpd ?? {};
if (consent) {
  consent.on('change', ({ granted }) => {
    if (!granted.includes('offers')) document.getElementById('offers')?.remove();
    if (window.counted && !granted.includes('analytics')) location.reload();
  });
  const login = await fetch('/gpd-session', { method: 'POST' });
  if (login.ok) await consent.join((await login.json()).token);
  const { server } = document.querySelector('script[data-server]').dataset;
  const { identify } = await import(`${server}/v1/agent.js`);
  // It waits for the choice, so nothing of the page may wait for it.
  const result = await identify({ kid: 'shop', consent: consent.receipt, workerUrl: '/agent-worker.js' });
  if (result.sent) requestId = result.response.requestId;
}
