// The shop and its tour: it follows the choice in the banner, runs the agent, and shows the server's verdict on each visit.
import { showAnswer } from './demo-answer.js';
import { buy } from './demo-basket.js';
import {
  dayOf,
  linkCase,
  markDone,
  now,
  say,
  show,
  showChoice,
  showDecision,
  showHealed,
  showLast,
  showResponse,
  showStatus,
  showVerified,
  showWithoutVerdict,
} from './demo-view.js';

const PURPOSE = 'device-identification';
const DAY_MS = 86_400_000;

const { kid, retentionDays } = document.body.dataset;

// The banner's script is loaded before this one; if it was blocked, `gpd.consent` is missing.
const consent = window.gpd?.consent ?? null;

const receipt = () => (consent ? consent.receipt() : null);

const loadAgent = () => import('/v1/agent.js');

/** The token and time of the last visit. */
let last = null;
/** The latest decision as the shop's backend reads it; null: nobody was checked. */
let decision = null;
let withdrawn = false;

async function lookUp(requestId) {
  try {
    const answer = await fetch(`/demo/decision?requestId=${encodeURIComponent(requestId)}`, {
      cache: 'no-store',
    });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

/** After an act in the answer: what it changed for the tour. */
function afterAct(action, text) {
  showStatus('');
  if (action === 'forget') {
    last = null;
    showLast(last);
  }
  if (action === 'contest') markDone('contest');
  linkCase(text);
}

/** One sentence about this visit, and one about the data of earlier visits. */
function unsentWords({ reason, message }) {
  if (reason === 'unavailable') return message;
  const unsent = say(reason === 'gpc' ? 'unsentGpc' : withdrawn ? 'unsentWithdrawn' : 'unsentDeclined');
  if (last) return `${unsent} ${say('held', { until: dayOf(last.at + Number(retentionDays) * DAY_MS) })}`;
  return withdrawn ? `${unsent} ${say('earlier', { days: retentionDays })}` : unsent;
}

async function showResult(result) {
  if (!result.sent) {
    decision = null;
    showWithoutVerdict(result);
    showStatus(unsentWords(result));
    return;
  }
  const { status, response } = result;
  const ok = response.reason === 'ok';
  showResponse(status, response, withdrawn);
  decision = ok ? await lookUp(response.requestId) : null;
  showDecision(decision);
  if (ok) {
    last = { token: response.transparencyToken, at: Date.now() };
    showLast(last);
    linkCase(await showAnswer(last.token, afterAct));
  }
  showStatus(say(ok ? 'decided' : 'refused', { at: now() }));
}

async function check() {
  const agent = await loadAgent();
  const result = await agent.identify({ kid, consent: receipt });
  await showResult(result);
  if (result.sent) markDone('verdict');
}

/** The backend plays the bot. The page shows its answer as if a program had driven this browser. */
async function bot() {
  const answer = await fetch('/demo/bot', { method: 'POST' });
  const response = await answer.json();
  await showResult({ sent: true, status: answer.status, response });
  markDone('bot');
  return response;
}

async function heal() {
  const response = await bot();
  const isHealed = response.class === 'human';
  showHealed(isHealed);
  if (isHealed) markDone('heal');
}

async function verify() {
  const answer = await fetch('/demo/verify', { method: 'POST' });
  const { output } = await answer.json();
  showVerified(output);
  showStatus(say('verified'));
  markDone('verify');
}

/** The button is a separate consent and says what for. After a refusal the verdict stays as it is. */
async function attest() {
  const agent = await loadAgent();
  const given = await receipt();
  const consents = given && { ...given, purposes: [...given.purposes, 'device-attestation'] };
  const result = await agent.identify({ kid, consent: consents, attest: 'passkey' });
  if (result.passkey === 'attested') await showResult(result);
  else showStatus(say('noPasskey'));
}

/** Sends an empty bundle past the agent's consent check, so that the server must refuse it. */
async function askAnyway() {
  const agent = await loadAgent();
  const key = await (await fetch(`/_fp/pubkey?kid=${encodeURIComponent(kid)}`)).json();
  const plaintext = agent.makePlaintext({ ...(await receipt()), purposes: [] }, {});
  const answer = await fetch('/_fp/i/v1', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    // Each answer brings a new session cookie, and with the old one the last visit could no longer be erased.
    credentials: 'omit',
    body: JSON.stringify(await agent.sealBundle(key, plaintext)),
  });
  await showResult({ sent: true, status: answer.status, response: await answer.json() });
}

const ACTIONS = { attest, bot, check, heal, verify, 'ask-anyway': askAnyway };

/** Keeps the keyboard focus on the button, or on the nearest one if the button was hidden. */
function keepFocus(button) {
  const group = button.closest('.buttons');
  const target = button.hidden ? group.querySelector('button:not([hidden])') : button;
  target?.focus();
}

/** Runs one action at a time. Errors are shown in the panel, so callers need not await the promise. */
async function run(action, pressed) {
  const buttons = document.querySelectorAll('button[data-action], button[data-buy]');
  for (const button of buttons) button.disabled = true;
  showStatus(say('asking'));
  try {
    await ACTIONS[action]();
  } catch {
    show('result', false);
    showStatus(say('unreachable'));
  } finally {
    for (const button of buttons) button.disabled = false;
    if (pressed) keepFocus(pressed);
  }
}

for (const button of document.querySelectorAll('button[data-action]'))
  if (button.dataset.action in ACTIONS)
    button.addEventListener('click', () => void run(button.dataset.action, button));

for (const button of document.querySelectorAll('[data-buy]'))
  button.addEventListener('click', () => buy(button.dataset, decision?.class ?? null));

/** Runs the agent after every choice: the agent and the server each check consent. */
async function follow(state) {
  withdrawn = state.purposes?.some(({ status }) => status === 'withdrawn') ?? false;
  const { proof, issuedAt } = state.phase === 'decided' ? await receipt() : {};
  showChoice({ ...state, granted: state.granted.includes(PURPOSE), withdrawn, proof, issuedAt });
  if (state.phase !== 'decided') return;
  markDone(withdrawn ? 'withdraw' : 'choose');
  await run('check');
}

for (const button of document.querySelectorAll('[data-scripted]')) button.hidden = false;

// On a phone the answer to the person stands first, and what engineers read is folded.
document.querySelector('[data-part="engineers"]').open = matchMedia('(min-width: 64rem)').matches;

for (const link of document.querySelectorAll('[data-as]'))
  link.addEventListener('click', () => markDone('rule'));

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
  let following = follow(await consent.ready);
  consent.on('change', (state) => {
    following = following.then(() => follow(state));
  });
}

void begin();
