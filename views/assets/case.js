/**
 * The page on which a person follows their contest with its case key. The key is in the fragment of a link, which browsers never
 * send, and is sent only in request bodies.
 */

const byId = (id) => document.getElementById(id);
const [open, key, told, view, reply, answer] = ['open', 'key', 'told', 'case', 'reply', 'answer'].map(byId);

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
const when = (iso) => `${TIME.format(new Date(iso))} UTC`;

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
  const { dataset } = byId('state');
  if (kind === 'complaint')
    return status === 'received' ? `${dataset.received} ${when(acknowledgeBy)}` : dataset[status];
  const stays = outcome === 'overturned' && !CHANGEABLE.includes(decision.class);
  if (status !== 'open') return dataset[stays ? 'stays' : outcome];
  const due = extendedTo ?? dueAt;
  return `${new Date(due) < new Date() ? dataset.late : dataset.open} ${when(due)}`;
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

function show(found) {
  const { decision, question, status, kind } = found;
  const isComplaint = kind === 'complaint';
  // The outcome of a complaint is its reason.
  const reasons = isComplaint ? [found.outcome].filter(Boolean) : found.reasons;
  for (const field of view.querySelectorAll('[data-text]'))
    field.textContent = found[field.dataset.text] ?? '';
  for (const field of view.querySelectorAll('[data-time]')) {
    const iso = found[field.dataset.time];
    field.textContent = iso ? when(iso) : '';
  }
  for (const part of view.querySelectorAll('[data-if]'))
    part.hidden = (found[part.dataset.if] ?? null) === null;
  byId('state').textContent = stateOf(found);
  reply.hidden = ['resolved', 'answered'].includes(status) || question === null || found.answer !== null;
  byId('complain').hidden = found.takesComplaints !== true;
  byId('decision-title').textContent = byId('decision-title').dataset[isComplaint ? 'complaint' : 'contest'];
  byId('ruling').hidden = reasons.length === 0;
  byId('reasons').replaceChildren(...reasonsOf({ reasons }));
  byId('class').textContent = view.dataset[decision.class] ?? decision.class;
  byId('decided').textContent = decision.decidedAt === null ? '' : when(decision.decidedAt);
  byId('rules').replaceChildren(...decision.rules.map(({ text }) => element('li', text)));
  byId('gone').hidden = decision.decidedAt !== null;
  view.hidden = false;
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
    if (response.status === 404) view.hidden = true;
  } catch {
    tell('away');
  }
  return null;
}

/** The key of the shown case: an answer belongs to it even if another key was typed into the field meanwhile. */
let caseKey = '';

async function load(given) {
  caseKey = given;
  view.hidden = true;
  tell('loading');
  const found = await ask('/case', { caseKey });
  if (found === null || caseKey !== given) return;
  show(found);
  tell(null);
  byId('state').focus();
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
  if (linked === '') return;
  key.value = linked;
  void load(linked);
}

addEventListener('hashchange', fromLink);
fromLink();
