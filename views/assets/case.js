import { fillBox, forget, read } from './remember.js';

/**
 * The page on which a person follows their objection with its case key. The key is in the fragment of a link, which browsers
 * never send, or remembered in this browser, and is sent only in request bodies.
 */

const byId = (id) => document.getElementById(id);
const [open, another, key, told, view, reply, answer] = [
  ...['open', 'another', 'key', 'told', 'case', 'reply', 'answer'],
].map(byId);
const state = byId('state');

const language = document.documentElement.lang;
const MOMENT = new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : language, {
  dateStyle: 'long',
  timeStyle: 'short',
});
const DAY = new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : language, { dateStyle: 'long' });
const when = (iso) => MOMENT.format(new Date(iso));

const tell = (what) => {
  told.textContent = what === null ? '' : told.dataset[what];
};

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/* A review can only change these classes. */
const CHANGEABLE = ['undeclared_automation', 'unknown'];

function stateOf({ kind, status, outcome, dueAt, extendedTo, decision, acknowledgeBy }) {
  const { dataset } = state;
  if (kind === 'complaint')
    return status === 'received'
      ? dataset.received.replace('{due}', DAY.format(new Date(acknowledgeBy)))
      : dataset[status];
  const stays = outcome === 'overturned' && !CHANGEABLE.includes(decision.class);
  if (status !== 'open') return dataset[stays ? 'stays' : outcome];
  const due = new Date(extendedTo ?? dueAt);
  return (due < new Date() ? dataset.late : dataset.open).replace('{due}', DAY.format(due));
}

/** A complaint is answered, an objection resolved. */
const isOpen = ({ status }) => status !== 'resolved' && status !== 'answered';

/** What happens next; nothing after a ruling for the person. */
function nextOf({ kind, status, outcome, question, answer: given }) {
  if (kind === 'complaint' && question === null) return null;
  if (!isOpen({ status })) return outcome === 'upheld' ? 'upheld' : null;
  if (question === null) return 'reading';
  return given === null ? 'question' : 'answered';
}

function reasonsOf(found) {
  const { dataset } = byId('reasons');
  // Both reviewers may have given the same reason: it is one reason, so it is shown once.
  const reasons = [...new Set(found.reasons)];
  return reasons.flatMap((reason, i) => {
    const text = element('p', reason);
    text.className = 'prose';
    text.dir = 'auto';
    return reasons.length < 2 ? [text] : [element('h3', i === 0 ? dataset.one : dataset.two), text];
  });
}

/** Filed, asked, answered, decided: each with its time, or what is known instead. */
function showSteps(found) {
  const { question, answer: given, resolvedAt, dueAt, extendedTo, acknowledgeBy } = found;
  for (const step of byId('steps').children) {
    const { dataset } = step;
    const at = dataset.step === 'answer' ? null : (found[dataset.step] ?? null);
    const time = step.querySelector('time');
    if (time !== null) {
      time.dateTime = at ?? '';
      const due = DAY.format(new Date(extendedTo ?? dueAt ?? acknowledgeBy));
      const otherwise = isOpen(found) ? dataset.none : dataset.never;
      time.textContent = at === null ? (otherwise ?? '').replace('{due}', due) : when(at);
    }
    step.removeAttribute('aria-current');
  }
  byId('steps').children[2].hidden = (given ?? null) === null;
  const current = resolvedAt ? 3 : given ? 2 : question ? 1 : 0;
  byId('steps').children[current].setAttribute('aria-current', 'step');
}

function showDecision({ decision }) {
  for (const name of view.querySelectorAll('[data-name]')) name.hidden = name.dataset.name !== decision.class;
  byId('decided').textContent = decision.decidedAt === null ? '' : when(decision.decidedAt);
  const texts = byId('rule-texts');
  const textOf = ({ id, text }) =>
    texts.querySelector(`[data-rule="${CSS.escape(id)}"]`)?.textContent ?? text;
  byId('rules').replaceChildren(...decision.rules.map((rule) => element('li', textOf(rule))));
  byId('gone').hidden = decision.decidedAt !== null;
}

/** The browser remembers an open case; a decided one was read. */
function showRemembered(found) {
  const box = view.querySelector('[data-remember]');
  box.hidden = true;
  if (isOpen(found)) {
    box.dataset.remember = caseKey;
    box.dataset.due = found.extendedTo ?? found.dueAt ?? found.acknowledgeBy;
    fillBox(box);
    return null;
  }
  const wasRemembered = read()?.caseKey === caseKey;
  if (wasRemembered) forget();
  return wasRemembered ? 'ended' : null;
}

function show(found) {
  const { question, site } = found;
  // The outcome of a complaint is its reason.
  const reasons = found.kind === 'complaint' ? [found.outcome].filter(Boolean) : found.reasons;
  document.querySelector('.site-head b').textContent = site;
  for (const field of view.querySelectorAll('[data-text]'))
    field.textContent = found[field.dataset.text] ?? field.dataset.unnamed ?? '';
  for (const field of view.querySelectorAll('[data-time]')) {
    const iso = found[field.dataset.time];
    field.textContent = iso ? when(iso) : '';
  }
  for (const part of view.querySelectorAll('[data-if]'))
    part.hidden = (found[part.dataset.if] ?? null) === null;
  state.textContent = stateOf(found);
  const next = byId('next');
  next.hidden = nextOf(found) === null;
  next.textContent = next.dataset[nextOf(found)] ?? '';
  showSteps(found);
  reply.hidden = !isOpen(found) || question === null || found.answer !== null;
  byId('complain').hidden = found.takesComplaints !== true;
  byId('ruling').hidden = reasons.length === 0;
  byId('reasons').replaceChildren(...reasonsOf({ reasons }));
  showDecision(found);
  setShown(true);
}

/** The form folds while a case is shown. */
function setShown(isShown) {
  view.hidden = !isShown;
  byId('title').hidden = !isShown;
  another.open = !isShown;
  another.classList.toggle('fold', isShown);
  another.querySelector('summary').hidden = !isShown;
  if (isShown) return;
  byId('next').hidden = true;
  state.textContent = state.dataset.title;
}

/** @returns null if the request was refused; the page then shows the reason */
async function ask(path, body) {
  try {
    const response = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      credentials: 'omit',
    });
    if (response.ok) return await response.json();
    tell(
      { 400: 'invalid', 404: 'missing', 409: 'closed', 413: 'invalid', 429: 'later' }[response.status] ??
        'away',
    );
    if (response.status === 404) setShown(false);
    if (response.status === 404 && read()?.caseKey === body.caseKey) forget();
  } catch {
    tell('away');
  }
  return null;
}

/** The key of the shown case: an answer belongs to it even if another key was typed into the field meanwhile. */
let caseKey = '';

async function load(given) {
  caseKey = given;
  setShown(false);
  tell('loading');
  const found = await ask('/case', { caseKey });
  if (found === null || caseKey !== given) return;
  show(found);
  tell(showRemembered(found));
  state.focus();
}

async function send() {
  const button = reply.querySelector('button');
  button.disabled = true;
  const found = await ask('/case/answer', { caseKey, answer: answer.value });
  button.disabled = false;
  if (found === null) return;
  answer.value = '';
  show(found);
  tell('answered');
}

async function complain() {
  const form = byId('complain-form');
  const [statement, email] = ['complaint', 'complaint-email'].map((id) => byId(id).value);
  const button = form.querySelector('button');
  button.disabled = true;
  const filed = await ask(
    '/case/complain',
    email === '' ? { caseKey, statement } : { caseKey, statement, email },
  );
  button.disabled = false;
  if (filed === null) return;
  form.hidden = true;
  const { dataset } = byId('complained');
  byId('complained').textContent =
    filed.caseKey === undefined ? dataset.before : `${dataset.sent} ${filed.caseKey}`;
  byId('complained').focus();
}

byId('complain-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void complain();
});

open.addEventListener('submit', (event) => {
  event.preventDefault();
  void load(key.value);
});

reply.addEventListener('submit', (event) => {
  event.preventDefault();
  void send();
});

function fromLink() {
  const linked = location.hash.slice(1);
  if (linked !== '') key.value = linked;
  const given = linked === '' ? read()?.caseKey : linked;
  if (given !== undefined) void load(given);
}

byId('title').hidden = true;
addEventListener('hashchange', fromLink);
fromLink();
