import {
  CLASSES,
  confidenceWords,
  consentWords,
  NO_ANSWER,
  NOT_ASKED,
  REFUSED,
  reasonWords,
  smartWords,
} from './demo-words.js';

const BAR_WIDTH = 200;

const parts = (name) => document.querySelectorAll(`[data-part="${name}"]`);

function setText(field, text) {
  document.querySelector(`[data-field="${field}"]`).textContent = text;
}

export function show(part, shown) {
  // The attribute, since SVG elements have no `hidden` property.
  for (const element of parts(part)) element.toggleAttribute('hidden', !shown);
}

function setVerdict(name, [word, meaning]) {
  for (const element of parts('verdict')) element.dataset.class = name;
  setText('class', word);
  setText('class-means', meaning);
}

function setAnswer(reason, http, json) {
  setText('reason', reason);
  setText('http', http);
  setText('reason-means', reasonWords(reason));
  setText('json', JSON.stringify(json, null, 2));
  show('result', true);
}

function setScore(score) {
  setText('score', score === null ? 'none' : `${score.toFixed(2)} of 1`);
  show('bar', score !== null);
  for (const element of parts('score-fill')) element.setAttribute('width', String((score ?? 0) * BAR_WIDTH));
}

/** The server's core answered. */
export function showResponse(status, response) {
  const ok = response.reason === 'ok';
  if (ok) setVerdict(response.class, CLASSES[response.class] ?? CLASSES.unknown);
  else setVerdict('refused', REFUSED);
  setAnswer(response.reason, `HTTP ${status}`, response);
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
  setText('consent', consentWords(response.consentState));
  setText('request', response.requestId);
  show('answered', true);
  show('judged', ok);
  show('attestation', response.needsAttestation);
  show('attested', response.attested?.by === 'passkey');
}

/** Nothing came from the core: the agent refused, or nobody answered. */
export function showWithoutVerdict(result) {
  const local = result.reason !== 'unavailable';
  setVerdict('refused', local ? NOT_ASKED : NO_ANSWER);
  setAnswer(result.reason, result.status ? `HTTP ${result.status}` : 'not sent', result);
  if (!local) setText('reason-means', result.message);
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

function rulesFired(rules) {
  const count = rules.length;
  if (count === 0) return 'No rule fired';
  const sum = rules.reduce((all, { weight }) => all + weight, 0);
  const cap =
    sum > 1 ? `weights add up to ${sum.toFixed(2)}; the score is capped at 1` : 'weights add up to the score';
  return `${count} ${count === 1 ? 'rule' : 'rules'} fired · ${cap}`;
}

/** What the backend's look-up gave: every rule with its weight; null when there is no decision to look up. */
export function showDecision(decision) {
  show('backend', decision !== null);
  if (decision === null) return;
  const rules = decision.rules ?? [];
  for (const list of parts('rules')) list.replaceChildren(...rules.map(ruleItem));
  show('rules', rules.length > 0);
  setText('backend-note', `${rulesFired(rules)} · policy ${decision.policyVersion}`);
}

/** @param own what the person's token reaches; null where it reaches nothing */
export function showReview(response, own) {
  const decision = own?.decisions.find(({ requestId }) => requestId === response.requestId);
  const contest = own?.contests.find(({ requestId }) => requestId === response.requestId);
  const review =
    decision?.overridden && own.override ? moment.format(new Date(own.override.createdAt)) : null;
  show('filed', false);
  if (contest?.status === 'open') showFiled(contest);
  show('reviewed', review !== null);
  show('contest', decision !== undefined && review === null && contest === undefined);
  if (review === null) return;
  setText('class-means', `A reviewer confirmed on ${review} that a person uses this device.`);
  setText('smart', 'The signs below no longer count against you.');
}

/** The answer to a contest; the key comes once. */
export function showFiled({ caseKey, dueAt }) {
  setText('filed', `A person will review it by ${moment.format(new Date(dueAt))}.`);
  show('filed', true);
  show('contest', false);
  show('case-key', caseKey !== undefined);
  setText('case-key', caseKey ?? '');
  document.querySelector('[data-testid="case-link"]').href = `/case#${caseKey ?? ''}`;
}

const moment = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** The one line that a screen reader is told of. */
export function showStatus(sentence) {
  setText('status', sentence);
}

export const now = () => clock.format(Date.now());

function choiceWords({ phase, problem, granted, gpc, purposes, proof, issuedAt }) {
  if (phase === 'unavailable')
    return `You could not be asked${problem ? ` (${problem})` : ''}, so nothing is collected.`;
  if (phase !== 'decided') return 'You have not chosen. The shop works either way.';
  if (gpc && !granted)
    return 'Your browser sends Global Privacy Control. The shop honours it and does not ask you.';
  const withdrawn = purposes?.some(({ status }) => status === 'withdrawn');
  const said = granted ? 'You accepted' : withdrawn ? 'You withdrew your consent' : 'You declined';
  const where = proof ? ` It is entry ${proof.seq} of the consent ledger.` : '';
  return `${said} on ${moment.format(issuedAt)}.${where} You can change this at any time.`;
}

/** @param choice the banner's state, with whether the shop's purpose is granted and the proof of that */
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
  show('anyway-note', visible['ask-anyway']);
}
