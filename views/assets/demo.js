// The tour of the demo: it follows the choice in the banner, runs the agent, and shows the server's verdict on each visit.
import {
  endReview,
  markDone,
  now,
  show,
  showChoice,
  showDecision,
  showFiled,
  showHealed,
  showLast,
  showResponse,
  showReview,
  showStatus,
  showVerified,
  showWithoutVerdict,
} from './demo-view.js';
import {
  earlierSentence,
  forgottenSentence,
  heldSentence,
  refusalSentence,
  unsentSentence,
} from './demo-words.js';

const PURPOSE = 'device-identification';

const { kid } = document.body.dataset;

// The banner's script is loaded before this one; if it was blocked, `gpd.consent` is missing.
const consent = window.gpd?.consent ?? null;

const receipt = () => (consent ? consent.receipt() : null);

const loadAgent = () => import('/v1/agent.js');

/** The token of the last visit, and the latest decision about this device. */
let last = null;
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

/** Authenticates with the visit's token: the person needs no account, and the shop no key. */
const me = (body) =>
  fetch('/me', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: last?.token, ...body }),
  });

/** @returns the reviews and contests that the person may see; null if the token has no access */
async function ownView() {
  const answer = last?.token ? await me({ action: 'export' }) : null;
  return answer?.ok ? answer.json() : null;
}

/** One sentence about this visit, and one about the data of earlier visits. */
function unsentWords({ reason, message }) {
  if (reason === 'unavailable') return message;
  const unsent = unsentSentence(reason, withdrawn);
  if (last) return `${unsent} ${heldSentence(last)}`;
  return withdrawn ? `${unsent} ${earlierSentence()}` : unsent;
}

async function showResult(result) {
  if (!result.sent) {
    showWithoutVerdict(result);
    showStatus(unsentWords(result));
    show('held', last !== null);
    return;
  }
  const { status, response } = result;
  const ok = response.reason === 'ok';
  showResponse(status, response, withdrawn);
  if (ok)
    last = {
      requestId: response.requestId,
      token: response.transparencyToken,
      shared: response.needsAttestation,
      at: Date.now(),
    };
  const decision = ok ? await lookUp(response.requestId) : null;
  const own = ok ? await ownView() : null;
  if (own) last.total = own.decisions.length;
  showLast(last);
  const asked = own?.decisions.find(({ requestId }) => requestId === response.requestId);
  showDecision(decision, asked?.overridden === true);
  showReview(response, own);
  // What is held stays erasable: a refused bundle changes nothing about the last visit.
  show('held', withdrawn && last !== null);
  showStatus(ok ? `Decided at ${now()}.` : `Refused at ${now()}. Nothing was stored about this visit.`);
}

async function forget() {
  const answer = await me({ action: 'forget' });
  if (answer.ok) {
    showStatus(forgottenSentence(await answer.json()));
    last = null;
    showLast(last);
    endReview();
    show('held', false);
    show('result', false);
  } else
    showStatus(
      'Nothing was erased: your last visit is too long ago to prove that it was yours. The page below says what is left to do.',
    );
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
  showStatus('The command ran. Its output is in step 7.');
  markDone('verify');
}

/** The button is a separate consent and says what for. After a refusal the verdict stays as it is. */
async function attest() {
  const agent = await loadAgent();
  const given = await receipt();
  const consents = given && { ...given, purposes: [...given.purposes, 'device-attestation'] };
  const result = await agent.identify({ kid, consent: consents, attest: 'passkey' });
  if (result.passkey === 'attested') await showResult(result);
  else showStatus('No passkey was created. The answer did not change.');
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

/** Authenticates with the visit's token, so that the person needs no account. */
async function contest() {
  const form = document.querySelector('[data-form="contest"]');
  if (!form.reportValidity()) {
    showStatus('Write a sentence first.');
    return;
  }
  const { statement, email } = Object.fromEntries(new FormData(form));
  const answer = await me({ action: 'contest', statement, ...(email ? { email } : {}) });
  const body = await answer.json();
  if (answer.ok) {
    showFiled(body);
    markDone('contest');
  }
  showStatus(
    answer.ok
      ? 'A person will review it. Keep the case key.'
      : answer.status === 401
        ? 'Not sent: the last visit is too long ago. Check again, then ask for the review.'
        : `Not sent: ${refusalSentence(body)}`,
  );
}

const ACTIONS = {
  attest,
  bot,
  check,
  contest,
  forget,
  heal,
  verify,
  'ask-anyway': askAnyway,
};

/** Keeps the keyboard focus on the button, or on the nearest one if the button was hidden. */
function keepFocus(button) {
  const group = button.closest('.buttons');
  const target = button.hidden ? group.querySelector('button:not([hidden])') : button;
  target?.focus();
}

/** Runs one action at a time. Errors are shown in the panel, so callers need not await the promise. */
async function run(action, pressed) {
  const buttons = document.querySelectorAll('button[data-action]');
  for (const button of buttons) button.disabled = true;
  showStatus('Asking…');
  try {
    await ACTIONS[action]();
  } catch {
    show('result', false);
    showStatus(
      'The agent or the server could not be reached. Check that the server is running, then try again.',
    );
  } finally {
    for (const button of buttons) button.disabled = false;
    if (pressed) keepFocus(pressed);
  }
}

for (const button of document.querySelectorAll('button[data-action]'))
  if (button.dataset.action in ACTIONS)
    button.addEventListener('click', () => void run(button.dataset.action, button));

/** Runs the agent after every choice: the agent and the server each check consent. */
async function follow(state) {
  withdrawn = state.purposes?.some(({ status }) => status === 'withdrawn') ?? false;
  const { proof, issuedAt } = state.phase === 'decided' ? await receipt() : {};
  showChoice({ ...state, granted: state.granted.includes(PURPOSE), proof, issuedAt });
  if (state.phase !== 'decided') return;
  markDone(withdrawn ? 'withdraw' : 'choose');
  await run('check');
}

for (const button of document.querySelectorAll('[data-scripted]')) button.hidden = false;

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
