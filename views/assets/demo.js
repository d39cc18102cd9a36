// The demo shop: the banner's choice, the agent behind it, and what the server makes of the visit.
import {
  now,
  show,
  showChoice,
  showDecision,
  showResponse,
  showStatus,
  showWithoutVerdict,
} from './demo-view.js';

const PURPOSE = 'device-identification';

const { kid, decisionsUrl } = document.body.dataset;

// The banner's script stands before this one; blocked, it leaves nothing behind.
const consent = window.gpd?.consent ?? null;

const receipt = () => (consent ? consent.receipt() : null);

const loadAgent = () => import('/v1/agent.js');

/** What a contest is about. */
let lastRequestId = null;

async function lookUp(requestId) {
  try {
    const url = new URL(decisionsUrl, location.href);
    url.searchParams.set('requestId', requestId);
    const answer = await fetch(url, { cache: 'no-store' });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

async function showResult(result) {
  if (!result.sent) {
    showWithoutVerdict(result);
    showStatus(result.message);
    return;
  }
  const { status, response } = result;
  const ok = response.reason === 'ok';
  showResponse(status, response);
  lastRequestId = response.requestId;
  showDecision(ok ? await lookUp(response.requestId) : null);
  showStatus(ok ? `Decided at ${now()}.` : `Refused at ${now()}. Nothing was written down.`);
}

async function check() {
  const agent = await loadAgent();
  await showResult(await agent.identify({ kid, consent: receipt }));
}

/** Around the agent's own gate, with nothing in the bundle: the server is the one that has to refuse. */
async function askAnyway() {
  const agent = await loadAgent();
  const key = await (await fetch(`/_fp/pubkey?kid=${encodeURIComponent(kid)}`)).json();
  const plaintext = agent.makePlaintext({ ...(await receipt()), purposes: [] }, {});
  const answer = await fetch('/_fp/i/v1', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    credentials: 'include',
    body: JSON.stringify(await agent.sealBundle(key, plaintext)),
  });
  await showResult({ sent: true, status: answer.status, response: await answer.json() });
}

/** By the shop, whose customer is signed in; gpd sees a token that vouches for this browser. */
async function contest() {
  const answer = await fetch('/demo/contest', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ requestId: lastRequestId }),
  });
  showStatus(
    answer.ok
      ? 'Contested. A person will look at it: sign in to the console as a reviewer to be that person.'
      : 'The contest was not taken: nobody was identified in this visit.',
  );
}

const ACTIONS = {
  check,
  contest,
  'ask-anyway': askAnyway,
};

/** The keyboard stays where it was, or on the nearest button when that one went away. */
function keepFocus(button) {
  const group = button.closest('.buttons');
  const target = button.hidden ? group.querySelector('button:not([hidden])') : button;
  target?.focus();
}

/** One at a time; what goes wrong is said in the panel, so that nobody has to wait for the promise. */
async function run(action, pressed) {
  const buttons = document.querySelectorAll('button[data-action]');
  for (const button of buttons) button.disabled = true;
  showStatus('Asking…');
  try {
    await ACTIONS[action]();
  } catch {
    show('result', false);
    showStatus('The agent or the server could not be reached. Is the server running? Then try again.');
  } finally {
    for (const button of buttons) button.disabled = false;
    if (pressed) keepFocus(pressed);
  }
}

for (const button of document.querySelectorAll('button[data-action]'))
  if (button.dataset.action in ACTIONS)
    button.addEventListener('click', () => void run(button.dataset.action, button));

/** Whatever the choice is, the agent is asked: its gate and the server answer for themselves. */
async function follow(state) {
  const { proof, issuedAt } = state.phase === 'decided' ? await receipt() : {};
  showChoice({ ...state, granted: state.granted.includes(PURPOSE), proof, issuedAt });
  if (state.phase === 'decided') await run('check');
}

async function begin() {
  if (!consent) {
    showChoice({ phase: 'unavailable', granted: false });
    return;
  }
  const on = (action, act) => {
    const button = document.querySelector(`[data-action="${action}"]`);
    button.addEventListener('click', () => void act(button));
  };
  on('settings', () => consent.open());
  on('withdraw', async (button) => {
    await consent.withdraw(PURPOSE);
    keepFocus(button);
  });
  let last = follow(await consent.ready);
  consent.on('change', (state) => {
    last = last.then(() => follow(state));
  });
}

void begin();
