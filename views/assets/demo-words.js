// Explains the codes of an IngestResponse to engineers, in English.

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

/** Explains how the weights of the rules make the score. */
export function sumSentence(rules, score) {
  const sum = rules.reduce((all, { weight }) => all + weight, 0);
  const adds = `weights add up to ${sum.toFixed(2)}`;
  if (score === null) return adds;
  if (Math.abs(sum - score) < 0.005) return 'weights add up to the score';
  if (score === 1) return `${adds}; the highest score is 1`;
  return sum > score ? `${adds}; the score is ${score.toFixed(2)} because of the review` : adds;
}
