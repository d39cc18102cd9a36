// The demo shop: a plain choice, the agent behind it, and what the server makes of the visit.
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
const POLICY_VERSION = 1;
const STORE = 'gpd-demo-choice';
const STATES = ['granted', 'rejected', 'withdrawn'];

const { kid, decisionsUrl } = document.body.dataset;

function readChoice() {
  try {
    const choice = JSON.parse(localStorage.getItem(STORE));
    return STATES.includes(choice?.state) && Number.isSafeInteger(choice.at) ? choice : null;
  } catch {
    return null;
  }
}

/** Written only here, so that nothing is stored before a choice. */
function keepChoice(state) {
  const choice = { state, at: Date.now() };
  try {
    localStorage.setItem(STORE, JSON.stringify(choice));
  } catch {
    // A browser that keeps nothing is asked again on the next visit.
  }
  return choice;
}

function receiptOf(choice) {
  return {
    purposes: choice?.state === 'granted' ? [PURPOSE] : [],
    gpc: navigator.globalPrivacyControl === true,
    version: POLICY_VERSION,
    issuedAt: choice?.at ?? Date.now(),
  };
}

const loadAgent = () => import('/v1/agent.js');

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
  showDecision(ok ? await lookUp(response.requestId) : null);
  showStatus(ok ? `Decided at ${now()}.` : `Refused at ${now()}. Nothing was written down.`);
}

async function check() {
  const agent = await loadAgent();
  await showResult(await agent.identify({ kid, consent: receiptOf(readChoice()) }));
}

/** Around the agent's own gate, with nothing in the bundle: the server is the one that has to refuse. */
async function askAnyway() {
  const agent = await loadAgent();
  const key = await (await fetch(`/_fp/pubkey?kid=${encodeURIComponent(kid)}`)).json();
  const plaintext = agent.makePlaintext({ ...receiptOf(null), purposes: [] }, {});
  const answer = await fetch('/_fp/i/v1', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    credentials: 'include',
    body: JSON.stringify(await agent.sealBundle(key, plaintext)),
  });
  await showResult({ sent: true, status: answer.status, response: await answer.json() });
}

const choose = (state) => () => {
  showChoice(keepChoice(state));
  return check();
};

const ACTIONS = {
  accept: choose('granted'),
  reject: choose('rejected'),
  withdraw: choose('withdrawn'),
  check,
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
  button.addEventListener('click', () => void run(button.dataset.action, button));

const choice = readChoice();
showChoice(choice);
if (choice) void run('check');
