// What the codes of an IngestResponse mean to a person.

export const CLASSES = {
  human: ['A person’s browser', 'Nothing that counts speaks against a person at this browser.'],
  declared_agent: [
    'A declared agent',
    'It proved who it is with a signature. That says who it is, not that it is harmless.',
  ],
  undeclared_automation: ['Undeclared automation', 'A program drives this browser and did not say so.'],
  unknown: ['Not clear', 'There is not enough evidence either way.'],
};

export const REFUSED = ['Not identified', 'The server gave no verdict on this visit.'];
export const NOT_ASKED = [
  'Not asked',
  'The agent’s consent gate stayed closed: nothing was read and nothing was sent.',
];
export const NO_ANSWER = ['No answer', 'The server could not give a verdict.'];

const REASONS = {
  ok: 'Identified under your consent.',
  'consent-missing': 'You did not agree to device identification. The server refused and stored nothing.',
  replay: 'This bundle was used before. Each bundle counts once.',
  stale: 'The bundle is too old, or this device’s clock differs too much from the server’s.',
  'decrypt-failed': 'The server could not open the bundle.',
  'unknown-key': 'The server does not know the key.',
  unknown: 'Something went wrong on the server.',
  gpc: 'This browser sends Global Privacy Control, and the shop honours it.',
  unavailable: 'There is no verdict to show.',
};

export function reasonWords(reason) {
  return REASONS[reason] ?? 'The server answered with a reason that this page does not know.';
}

export function confidenceWords(confidence) {
  if (confidence >= 0.99) return 'Seen before: an earlier visit had the same stable signals.';
  if (confidence > 0) return 'First sighting: no earlier visit had these stable signals.';
  return 'Not identified.';
}

export function smartWords({ bot, tampered, inconsistency }) {
  const contradictions = inconsistency === 1 ? '1 contradiction' : `${inconsistency} contradictions`;
  return [
    bot ? 'evidence of automation' : 'no evidence of automation',
    `${contradictions} between signals`,
    tampered ? 'not explained by a privacy defence' : null,
    'private mode is not judged',
  ]
    .filter(Boolean)
    .join(' · ');
}

const GPC_SOURCES = {
  none: 'no Global Privacy Control',
  header: 'Global Privacy Control by header',
  bundle: 'Global Privacy Control in the bundle',
  both: 'Global Privacy Control by header and bundle',
};

export function consentWords({ purposes, gpcSource, version, basis }) {
  return [
    purposes.length > 0 ? `granted: ${purposes.join(', ')}` : 'nothing granted',
    GPC_SOURCES[gpcSource] ?? gpcSource,
    `policy version ${version}`,
    basis === 'proven' ? 'proven by the ledger' : 'asserted by this page',
  ].join(' · ');
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' });
const DAY_MS = 86_400_000;

/** After a withdrawal, where this page does not know what was before it. */
export const earlierSentence = () =>
  `Nothing new is collected. Decisions of earlier visits are held for ${document.body.dataset.retentionDays} days each, unless you erase them on the page below.`;

/** After a withdrawal: what the visits before it left, and until when. */
export function heldSentence({ at, shared, total }) {
  const until = day.format(at + Number(document.body.dataset.retentionDays) * DAY_MS);
  const what =
    shared || total === undefined ? 'the last decision' : total === 1 ? '1 decision' : `${total} decisions`;
  return `Nothing new is collected. Data of your earlier visits is still held: ${what} about this device, until ${until}, unless you erase it earlier.`;
}

export function forgottenSentence({ shared, scopes, receiptId }) {
  const isKept = scopes.some(({ action }) => action === 'retained');
  const gone = shared
    ? 'Only the last visit was erased, because other devices look the same and the rest may be other people’s.'
    : 'The decisions and the hash of this device were erased.';
  const what = isKept
    ? 'Not all of it was erased: an open contest, a review in your favour or a legal hold keeps the rest.'
    : gone;
  return `${what} Receipt: ${receiptId}.`;
}
