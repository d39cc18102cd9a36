/** What every word and field of an export means, said to the person concerned. A test holds it against a real export. */

export interface Meaning {
  readonly name: string;
  readonly text: string;
}

const of = (entries: Readonly<Record<string, string>>): readonly Meaning[] =>
  Object.entries(entries).map(([name, text]) => ({ name, text }));

export const CLASS_MEANINGS = of({
  human: 'Nothing in the visit spoke against a person at this browser.',
  declared_agent:
    'A program that said who it is and proved it by a signature. It is still scored like everybody else.',
  undeclared_automation: 'A program drove the browser and did not say so.',
  unknown: 'There was too little to go by, or only weak signs: no decision either way.',
});

export const KIND_MEANINGS = of({
  A: 'Automation: the browser itself shows that a program drives it. One is enough for “undeclared automation”.',
  T: 'Tampering: two things that the browser says cannot both be true.',
  M: 'A medium sign: unusual, and explained by honest setups too. Several together count.',
  W: 'A weak sign: never decides anything alone.',
});

export const DEFENSE_MEANINGS = of({
  'firefox-rfp':
    'Firefox or Tor Browser with its protection against fingerprinting switched on. What it changes on purpose is not held against anybody.',
  brave:
    'Brave with its protection against fingerprinting. What it changes on purpose is not held against anybody.',
});

/** Fields of export.json by path; `[]` is “each of the list”. */
export const FIELD_MEANINGS = of({
  subject: 'Whom this export is about.',
  'subject.reference':
    'A code that stands for the person in records that outlive their data. It leads back to nobody without the operator’s key.',
  'subject.tenant': 'The operator’s name in this system.',
  'subject.visitorId':
    'The id that was asked about, when the export was made for one. It changes every few weeks.',
  'subject.device':
    'What is kept about the device as such; empty when the export was made for single requests.',
  'subject.device.firstSeenAt': 'When the device was first seen.',
  'subject.device.lastSeenAt': 'When it was last seen.',
  'subject.device.seen': 'How many visits were counted.',
  'subject.device.visitorIds': 'The ids that the device had, one for each period.',
  'subject.device.visitorIds[].visitorId': 'The id in that period.',
  'subject.device.visitorIds[].epoch': 'The number of the period.',
  'subject.device.networksByDay':
    'How many networks the device came from on a day. The networks themselves are not kept.',
  'subject.device.networksByDay[].day': 'The day, in UTC.',
  'subject.device.networksByDay[].networks': 'How many.',
  'subject.linkedRequests': 'Visits that the person, signed in, said were theirs.',
  'subject.linkedRequests[].requestId': 'The number of the visit.',
  'subject.linkedRequests[].linkedAt': 'When it was linked.',
  generatedAt: 'When this export was made.',
  decisions: 'Every automated decision that is still kept, the newest first.',
  'decisions[].requestId': 'The number of the visit and its decision. Name it to contest the decision.',
  'decisions[].decidedAt': 'When it was decided.',
  'decisions[].class': 'What was decided, as a word of the table of classes.',
  'decisions[].classText': 'The same in plain words.',
  'decisions[].visitorId': 'The id of the device at that time; empty when it was not recognised.',
  'decisions[].declaredAgentId': 'The address of the program that signed the visit, when one did.',
  'decisions[].confidence':
    'How sure the recognition of the device was, from 0 to 1. It says nothing about bots.',
  'decisions[].suspectScore': 'The weights of the rules that fired, added up, from 0 to 1.',
  'decisions[].smartSignals': 'A summary that goes with the decision.',
  'decisions[].smartSignals.bot': 'Whether there was evidence of automation.',
  'decisions[].smartSignals.incognito': 'Private mode. It is never judged and always “false”.',
  'decisions[].smartSignals.tampered':
    'Whether something contradicted itself and no privacy protection explains it.',
  'decisions[].smartSignals.inconsistency': 'How many contradictions there were.',
  'decisions[].needsAttestation':
    'The device looks like many others: its id may be shared with other people.',
  'decisions[].consentState': 'The consent that the visit was judged under.',
  'decisions[].consentState.purposes': 'The purposes that were granted.',
  'decisions[].consentState.gpc':
    'Whether the browser sent Global Privacy Control, a request not to be tracked.',
  'decisions[].consentState.gpcSource':
    'Where that was said: in the request, in the sealed message, in both, or not at all.',
  'decisions[].consentState.version': 'The version of the consent text.',
  'decisions[].consentState.issuedAt': 'When consent was given, in milliseconds since 1970.',
  'decisions[].consentState.basis': 'Whether consent was asserted by the page or proven by the ledger.',
  'decisions[].rules': 'The rules that fired. A rule that is not here did not.',
  'decisions[].rules[].id': 'The rule, as in the table of rules.',
  'decisions[].rules[].weight':
    'What it added to the score at that time. It is 0 when another rule that states the same fact counted instead.',
  'decisions[].rules[].kind': 'What it counted as at that time: A, T, M or W, as in the table of kinds.',
  'decisions[].rules[].text': 'What it saw, in plain words.',
  'decisions[].defenses': 'Privacy protections that were recognised and taken into account.',
  'decisions[].policyVersion': 'The version of the rules that decided.',
  'decisions[].overridden': 'An earlier review by a person decided, and not the rules.',
  'decisions[].restricted': 'A contest is open: nobody should act on the decision.',
  'decisions[].contestId': 'The number of the contest, when there is one.',
  'decisions[].whatWouldHaveChanged': 'What would have led to another decision.',
  'decisions[].whatWouldHaveChanged.text': 'In plain words.',
  'decisions[].whatWouldHaveChanged.decisive': 'Rules each of which alone made the difference.',
  'decisions[].whatWouldHaveChanged.decisive[].id': 'The rule.',
  'decisions[].whatWouldHaveChanged.decisive[].class': 'What the decision would have been without it.',
  'decisions[].whatWouldHaveChanged.withoutAll':
    'When no single rule decided: the decision without any of them.',
  'decisions[].howToContest': 'How to have a person look at the decision.',
  'decisions[].signals':
    'How rare each sign of the browser was, where the operator keeps that for a few minutes. Never its value.',
  'decisions[].signals.devices': 'How many devices were counted.',
  'decisions[].signals.signals': 'The signs that were counted.',
  'decisions[].signals.signals[].name': 'What was looked at.',
  'decisions[].signals.signals[].bits':
    'How much it tells the device apart: each bit halves the number of devices like it.',
  override: 'A review found that this is a person. The rules may not call them a program any more.',
  'override.neverAutomation': 'Always “true” where there is one.',
  'override.createdAt': 'When the review decided so.',
  contests: 'Decisions that the person contested.',
  'contests[].contestId': 'The number of the contest.',
  'contests[].requestId': 'The decision that is contested.',
  'contests[].status': 'Open, or resolved.',
  'contests[].outcome': 'Upheld: the decision stands. Overturned: it does not.',
  'contests[].statement': 'What the person wrote.',
  'contests[].filedAt': 'When it was filed.',
  'contests[].dueAt': 'By when it has to be answered.',
  'contests[].version': 'How often the record changed.',
  'contests[].restricted': 'While it is open, nobody should act on the decision.',
  'contests[].question': 'What the reviewer asked the person.',
  'contests[].reason': 'Why the reviewer decided so.',
  'contests[].resolvedAt': 'When it was answered.',
  'contests[].resolvedBy': 'Who answered it, by role and code.',
  'contests[].resolvedBy.role': 'The role of the reviewer.',
  'contests[].resolvedBy.ref': 'A code that stands for the reviewer.',
  'contests[].proposed': 'Where two reviewers have to agree: what the first one found.',
  'contests[].proposed.outcome': 'The outcome that was proposed.',
  'contests[].proposed.by': 'A code that stands for the reviewer.',
  'contests[].proposed.at': 'When it was proposed.',
  consent: 'Consent, when the export was made for a person that the consent ledger knows.',
  'consent.principalId': 'The operator’s own id of the person.',
  'consent.state': 'What holds now for each purpose.',
  'consent.state[].purpose': 'What the data would be used for.',
  'consent.state[].choice': 'What the person said last.',
  'consent.state[].at': 'When.',
  'consent.state[].policyVersion': 'The version of the consent text.',
  'consent.state[].expiresAt': 'Until when it holds.',
  'consent.state[].proof': 'Where it stands in the ledger.',
  'consent.state[].proof.seq': 'The number of the entry.',
  'consent.state[].proof.hash': 'The fingerprint of the entry.',
  'consent.history': 'Everything the person said about consent, the newest first.',
  'consent.history[].seq': 'The number of the entry in the ledger.',
  'consent.history[].type': 'Granted, denied, or withdrawn.',
  'consent.history[].purpose': 'What for.',
  'consent.history[].time': 'When.',
  'consent.history[].policyVersion': 'The version of the consent text.',
  'consent.history[].gpc':
    'Whether a Global Privacy Control signal opted the person out of this purpose then.',
  'consent.history[].source': 'By which way it came in.',
  'consent.history[].expiresAt': 'Until when it holds.',
  notice: 'Who is responsible, and what the law has them say.',
  'notice.controller': 'Who is responsible.',
  'notice.contact': 'Whom to ask.',
  'notice.purposes': 'What the data are used for.',
  'notice.categories': 'Which kinds of data there are.',
  'notice.recipients': 'Who gets them.',
  'notice.transfers': 'Whether they go to other countries.',
  'notice.retention': 'How long they are kept.',
  'notice.source': 'Where they come from.',
  'notice.rights': 'What the person may ask for.',
  'notice.authority': 'Where to complain.',
  'notice.automatedDecisions': 'How decisions are made, and what may follow from them.',
});

/** Columns of decisions.csv that are no field of a decision under the same name. */
export const CSV_MEANINGS = of({
  rules: 'The rules that fired, each with its weight in brackets.',
  rulesText: 'What they saw, in plain words.',
  contestStatus: 'Open or resolved; empty without a contest.',
  contestOutcome: 'Upheld or overturned; empty while it is open.',
  contestStatement: 'What the person wrote.',
  contestReason: 'Why the reviewer decided so.',
});
