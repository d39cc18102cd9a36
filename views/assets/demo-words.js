// Explains the codes of an IngestResponse to a person.

export const CLASSES = {
  human: ['A person', 'Nothing that counts speaks against a person at this browser.'],
  declared_agent: [
    'A declared agent',
    'It proved who it is with a signature. That says who it is, not that it is harmless.',
  ],
  undeclared_automation: ['An automated visit', 'It looks as if a program drives this browser.'],
  unknown: ['Not decided', 'There is not enough evidence either way.'],
};

export const REFUSED = ['Not identified', 'The server gave no verdict on this visit.'];
export const NOT_ASKED = ['Not asked', 'No server was asked.'];
export const NO_ANSWER = ['No answer', 'The server could not give a verdict.'];

const REASONS = {
  ok: 'Identified under your consent.',
  'consent-missing': 'This request carried no consent. The server refused it and stored nothing.',
  replay: 'This bundle was used before. Each bundle counts once.',
  stale: 'The bundle is too old, or this device’s clock differs too much from the server’s.',
  'decrypt-failed': 'The server could not open the bundle.',
  'unknown-key': 'The server does not know the key.',
  unknown: 'Something went wrong on the server.',
  unavailable: 'There is no verdict to show.',
};

/** The sentence for a reason of the agent, which then read and sent nothing. */
export function unsentSentence(reason, withdrawn) {
  if (reason === 'gpc')
    return 'Nothing was sent: your browser sends Global Privacy Control, and the shop honours it.';
  return withdrawn
    ? 'Nothing was sent: you have withdrawn your consent.'
    : 'Nothing was read or sent, because you did not agree.';
}

export function reasonWords(reason) {
  return REASONS[reason] ?? 'The server answered with a reason that this page does not know.';
}

export function confidenceWords(confidence) {
  if (confidence >= 0.99) return 'An earlier visit came from this device, or from one that looks the same.';
  if (confidence > 0) return 'We have not seen this device before.';
  return 'Not identified.';
}

export function smartWords({ bot, tampered, inconsistency }) {
  const contradictions = inconsistency === 1 ? '1 contradiction' : `${inconsistency} contradictions`;
  return [
    bot ? 'evidence of automation' : 'no evidence of automation',
    `${contradictions} between signals`,
    tampered ? 'no privacy tool explains it' : null,
    'private mode is not judged',
  ]
    .filter(Boolean)
    .join(' · ');
}

const GPC_SOURCES = {
  header: 'Global Privacy Control by header',
  bundle: 'Global Privacy Control in the bundle',
  both: 'Global Privacy Control by header and bundle',
};

export function consentWords({ purposes, gpcSource }, withdrawn) {
  const agreed = purposes.includes('device-identification');
  const refusal = withdrawn ? 'You withdrew your consent.' : 'You did not agree to device recognition.';
  const choice = agreed ? 'You agreed to device recognition.' : refusal;
  return gpcSource === 'none' ? choice : `${choice} ${GPC_SOURCES[gpcSource] ?? gpcSource}.`;
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' });
const DAY_MS = 86_400_000;

/** The sentence after a withdrawal if this page does not know the earlier visits. */
export const earlierSentence = () =>
  `Decisions of earlier visits are held for ${document.body.dataset.retentionDays} days each. The page below shows what of them can be erased.`;

/** The sentence after a withdrawal about the data of earlier visits and its expiry. */
export function heldSentence({ at, shared, total }) {
  const until = day.format(at + Number(document.body.dataset.retentionDays) * DAY_MS);
  if (shared)
    return `Your last visit is still held, until ${until}, unless you erase it here. Earlier visits stay until their own time is over: similar devices share an id, so they may be other people’s.`;
  const what = total === undefined ? 'the last decision' : total === 1 ? '1 decision' : `${total} decisions`;
  return `Data of your earlier visits is still held: ${what} about this device, until ${until}, unless you erase it earlier.`;
}

export const eraseWords = (shared) =>
  shared ? 'Erase the last visit' : 'Erase what is held about this device';

/** Explains how the weights of the rules make the score. */
export function sumSentence(rules, score, overridden) {
  const sum = rules.reduce((all, { weight }) => all + weight, 0);
  const adds = `weights add up to ${sum.toFixed(2)}`;
  if (score === null) return adds;
  if (Math.abs(sum - score) < 0.005) return 'weights add up to the score';
  if (overridden && sum > score) return `${adds}; the score is ${score.toFixed(2)} because of the review`;
  return score === 1 ? `${adds}; the highest score is 1` : adds;
}

export function forgottenSentence({ shared, scopes, receiptId }) {
  const isKept = scopes.some(({ action }) => action === 'retained');
  const gone = shared
    ? 'Only the last visit was erased. Similar devices share an id, so the rest may be other people’s.'
    : 'The decisions and the hash of this device were erased.';
  const rows = scopes.filter(({ scope, action }) => scope !== 'backups' && action !== 'none');
  const isAllKept = rows.length > 0 && rows.every(({ action }) => action === 'retained');
  const what = isAllKept
    ? 'Nothing was erased: an open case or a legal hold keeps all of it.'
    : isKept
      ? 'Not all of it was erased: an open case, a review in your favour or a legal hold keeps the rest.'
      : gone;
  return `${what} Receipt: ${receiptId}.`;
}

/** Says why an objection was refused, and what else to do. */
export function refusalSentence({ error, message, details = [] }) {
  const isAboutField = error === 'invalid-request' && details.length > 0;
  return isAboutField ? `${details.join('; ')}.` : [message, ...details].join(' ');
}
