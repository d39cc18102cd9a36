import {
  CLASSES,
  confidenceWords,
  consentWords,
  eraseWords,
  NO_ANSWER,
  NOT_ASKED,
  REFUSED,
  reasonWords,
  smartWords,
  sumSentence,
} from './demo-words.js';

const BAR_WIDTH = 200;

const parts = (name) => document.querySelectorAll(`[data-part="${name}"]`);

function setText(field, text) {
  document.querySelector(`[data-field="${field}"]`).textContent = text;
}

export function show(part, shown) {
  // This sets the attribute, because SVG elements have no `hidden` property.
  for (const element of parts(part)) element.toggleAttribute('hidden', !shown);
}

export function markDone(step) {
  document.querySelector(`[data-step="${step}"]`).dataset.done = '';
}

function setVerdict(name, [word, meaning]) {
  for (const element of parts('verdict')) element.dataset.class = name;
  setText('class', word);
  setText('class-means', meaning);
}

function setAnswer(reason, http, json) {
  setText('reason', reason);
  setText('http', http);
  setText('json', JSON.stringify(json, null, 2));
  show('result', true);
}

function setScore(score) {
  setText('score', score === null ? 'none' : `${score.toFixed(2)} of 1`);
  show('bar', score !== null);
  for (const element of parts('score-fill')) element.setAttribute('width', String((score ?? 0) * BAR_WIDTH));
}

/** Shows an answer of the server. */
export function showResponse(status, response, withdrawn) {
  const ok = response.reason === 'ok';
  if (ok) setVerdict(response.class, CLASSES[response.class] ?? CLASSES.unknown);
  else setVerdict('refused', REFUSED);
  setAnswer(response.reason, `HTTP ${status}`, response);
  setText('reason-means', reasonWords(response.reason));
  setText('visitor', response.visitorId ?? 'none');
  setText(
    'visitor-means',
    response.visitorId === null
      ? 'Nobody was identified.'
      : 'For this shop only. Another shop gets a different id.',
  );
  setText('confidence', String(response.confidence));
  setText('confidence-means', confidenceWords(response.confidence));
  setScore(response.suspectScore);
  setText('smart', smartWords(response.smartSignals));
  setText('consent', consentWords(response.consentState, withdrawn));
  setText('request', response.requestId);
  show('answered', true);
  show('judged', ok);
  show('attestation', response.needsAttestation);
  show('attested', response.attested?.by === 'passkey');
}

/** Shows that there is no answer: the agent refused, or the server is unreachable. */
export function showWithoutVerdict(result) {
  const local = result.reason !== 'unavailable';
  setVerdict('refused', local ? NOT_ASKED : NO_ANSWER);
  setAnswer(result.reason, result.status ? `HTTP ${result.status}` : 'not sent', result);
  setText('reason-means', local ? 'Nothing was sent.' : result.message);
  show('answered', false);
  show('judged', false);
  show('attestation', false);
  show('backend', false);
}

function ruleItem({ id, weight, text }) {
  const item = document.createElement('li');
  const words = document.createElement('span');
  words.textContent = text;
  const number = document.createElement('span');
  number.className = 'quiet weight';
  number.textContent = `${id} · ${weight.toFixed(2)}`;
  item.append(words, number);
  return item;
}

function rulesFired(rules, score, overridden) {
  const count = rules.length;
  if (count === 0) return 'No rule fired';
  return `${count} ${count === 1 ? 'rule' : 'rules'} fired · ${sumSentence(rules, score, overridden)}`;
}

/** Lists every rule with its weight. @param decision from the shop's backend; null if there is none */
export function showDecision(decision, overridden) {
  show('backend', decision !== null);
  if (decision === null) return;
  const rules = decision.rules ?? [];
  for (const list of parts('rules')) list.replaceChildren(...rules.map(ruleItem));
  show('rules', rules.length > 0);
  setText(
    'backend-note',
    `${rulesFired(rules, decision.suspectScore, overridden)} · policy ${decision.policyVersion}`,
  );
}

/** The date of a review is only shown for the person's own case, because others may share the device id. */
function reviewWords({ override }) {
  if (!override) return 'Devices that look like this one were reviewed. They count as a person’s.';
  const at = moment.format(new Date(override.createdAt));
  return `A reviewer confirmed on ${at} that a person uses this device.`;
}

/** @param own the export for the person's token; null if the token has no access */
export function showReview(response, own) {
  const decision = own?.decisions.find(({ requestId }) => requestId === response.requestId);
  const contest = own?.contests.find(({ requestId }) => requestId === response.requestId);
  const overridden = decision?.overridden === true;
  const isOpen = contest?.status === 'open';
  show('filed', false);
  showContest(decision !== undefined && !overridden && contest === undefined, isOpen);
  if (isOpen) showFiled(contest);
  show('reviewed', overridden);
  if (!overridden) return;
  setText('class-means', reviewWords(own));
  setText('smart', 'The signs below do not count against you.');
}

/** Shows the form, or instead of it a sentence that there is nothing to review. */
function showContest(shown, filed = false) {
  show('contest', shown);
  show('no-contest', !shown && !filed);
}

/** After an erasure there is no visit left to review; a case that was filed stays on the page. */
export function endReview() {
  showContest(false, !parts('filed')[0].hidden);
}

export function showHealed(isHealed) {
  show('healed', true);
  setText(
    'healed',
    isHealed
      ? 'The same device with the same signs now counts as a person’s.'
      : 'It still counts as a bot: no review of it has been confirmed yet.',
  );
}

export function showVerified(output) {
  setText('verified', output);
  show('verified', true);
}

/** Links to the data of the last visit. @param last null if this page does not know an earlier visit */
export function showLast(last) {
  const link = document.querySelector('[data-testid="my-data"]');
  link.hash = last?.token ? `visit=${last.token}` : '';
  setText('erase', eraseWords(last?.shared));
  show('erase-device', last?.shared === false);
}

/** Shows the answer to a contest. The server sends the case key only once. */
export function showFiled({ contestId, caseKey, dueAt, extendedTo }) {
  const due = moment.format(new Date(extendedTo ?? dueAt));
  setText('filed', `A person will review it by ${due}. Case number: ${contestId}.`);
  show('filed', true);
  showContest(false, true);
  for (const link of document.querySelectorAll('[data-as]'))
    link.href = `/demo/console?as=${link.dataset.as}&case=${contestId}`;
  show('case-key', caseKey !== undefined);
  setText('case-key', caseKey ?? '');
  document.querySelector('[data-testid="case-link"]').href = `/case#${caseKey ?? ''}`;
}

const moment = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** Screen readers announce this line. */
export function showStatus(sentence) {
  setText('status', sentence);
}

export const now = () => clock.format(Date.now());

function choiceWords({ phase, problem, granted, gpc, purposes, proof, issuedAt }) {
  if (phase === 'unavailable')
    return `You could not be asked${problem ? ` (${problem})` : ''}, so nothing is read.`;
  if (phase !== 'decided') return 'You have not chosen. The shop works either way.';
  if (gpc && !granted)
    return 'Your browser sends Global Privacy Control. The shop honours it and does not ask you.';
  const withdrawn = purposes?.some(({ status }) => status === 'withdrawn');
  const said = granted ? 'You accepted' : withdrawn ? 'You withdrew your consent' : 'You declined';
  const where = proof ? ` Your choice is recorded (no. ${proof.seq}).` : '';
  return `${said} on ${moment.format(issuedAt)}.${where} You can change it at any time.`;
}

/** @param choice the state of the banner, with `granted` and the proof for the shop's purpose */
export function showChoice(choice) {
  const { phase, granted } = choice;
  setText('choice', choiceWords(choice));
  const decided = phase === 'decided';
  const visible = {
    settings: decided,
    withdraw: decided && granted,
    check: decided && granted,
    'ask-anyway': decided && !granted,
  };
  for (const [action, shown] of Object.entries(visible))
    document.querySelector(`[data-action="${action}"]`).hidden = !shown;
}
