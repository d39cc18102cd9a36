import {
  CLASSES,
  confidenceWords,
  consentWords,
  NO_ANSWER,
  NOT_ASKED,
  REFUSED,
  reasonWords,
  smartWords,
  sumSentence,
} from './demo-words.js';

const BAR_WIDTH = 200;

const parts = (name) => document.querySelectorAll(`[data-part="${name}"]`);

const words = JSON.parse(document.getElementById('words').content);

/** A text of the page's language, with values in place of `{name}`. */
export const say = (key, values = {}) =>
  words[key].replace(/\{(\w+)\}/g, (_place, name) => String(values[name] ?? ''));

export function setText(field, text) {
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
  show('no-result', false);
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

function rulesFired(rules, score) {
  const count = rules.length;
  if (count === 0) return 'No rule fired';
  return `${count} ${count === 1 ? 'rule' : 'rules'} fired · ${sumSentence(rules, score)}`;
}

/** Lists every rule with its weight. @param decision from the shop's backend; null if there is none */
export function showDecision(decision) {
  show('backend', decision !== null);
  if (decision === null) return;
  const rules = decision.rules ?? [];
  for (const list of parts('rules')) list.replaceChildren(...rules.map(ruleItem));
  show('rules', rules.length > 0);
  setText('backend-note', `${rulesFired(rules, decision.suspectScore)} · policy ${decision.policyVersion}`);
}

export function showHealed(isHealed) {
  show('healed', true);
  setText('healed', say(isHealed ? 'healed' : 'notHealed'));
}

export function showVerified(output) {
  setText('verified', output);
  show('verified', true);
}

/** Links to the data of the last visit. @param last null if this page does not know an earlier visit */
export function showLast(last) {
  document.querySelector('[data-testid="my-data"]').hash = last?.token ? `visit=${last.token}` : '';
}

/** Both reviewers open the case that the answer names. @param text of the answer, or null */
export function linkCase(text) {
  const [contestId] = /con_[0-9A-Z]{26}/.exec(text ?? '') ?? [];
  if (contestId === undefined) return;
  for (const link of document.querySelectorAll('[data-as]'))
    link.href = `/demo/console?as=${link.dataset.as}&case=${contestId}`;
}

const { lang } = document.documentElement;
const moment = new Intl.DateTimeFormat(lang === 'en' ? 'en-GB' : lang, {
  dateStyle: 'long',
  timeStyle: 'short',
});
const day = new Intl.DateTimeFormat(lang === 'en' ? 'en-GB' : lang, { dateStyle: 'long' });
const clock = new Intl.DateTimeFormat(lang === 'en' ? 'en-GB' : lang, { timeStyle: 'medium' });

/** Screen readers announce this line. */
export function showStatus(sentence) {
  setText('status', sentence);
}

export const now = () => clock.format(Date.now());
export const dayOf = (at) => day.format(at);

function choiceWords({ phase, problem, granted, gpc, withdrawn, proof, issuedAt }) {
  if (phase === 'unavailable') return `${say('unavailable')}${problem ? ` (${problem})` : ''}`;
  if (phase !== 'decided') return say('notChosen');
  if (gpc && !granted) return say('gpc');
  const choice = granted ? 'agreed' : withdrawn ? 'withdrew' : 'declined';
  const where = proof ? ` ${say('recorded', { seq: proof.seq })}` : '';
  return `${say(choice, { at: moment.format(issuedAt) })}${where}`;
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
