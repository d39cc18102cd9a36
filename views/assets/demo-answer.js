// The answer to the person: the same part as on /my-data, which the server renders for the token of a visit.
import { say } from './demo-view.js';

const place = document.querySelector('[data-part="answer"]');
const { lang } = document.documentElement;

/** @returns the part, or why there is none */
async function fetchAnswer(fields) {
  const reply = await fetch(`/my-data?lang=${lang}`, {
    method: 'POST',
    headers: { accept: 'text/html' },
    body: fields,
  });
  const answer = new DOMParser().parseFromString(await reply.text(), 'text/html');
  if (reply.ok) return { part: answer.querySelector('[data-gpd-held]') };
  const error = answer.querySelector('[data-error]')?.textContent ?? '';
  // The tour says in which step a new visit is made.
  return { part: null, error: reply.status === 401 ? say('late') : error };
}

/** Shows a refusal next to the pressed button, with the focus. What was typed stays. */
function showRefusal(submitter, text) {
  const notice = document.createElement('p');
  Object.assign(notice, { className: 'notice', tabIndex: -1, textContent: text });
  notice.dataset.testid = 'refused';
  submitter.closest('.buttons').before(notice);
  notice.focus();
}

async function send(form, submitter, onDone) {
  form.querySelector('[data-testid="refused"]')?.remove();
  const fields = new URLSearchParams(new FormData(form));
  fields.set('action', submitter.value);
  submitter.disabled = true;
  try {
    const { part, error } = await fetchAnswer(fields);
    if (part === null) {
      showRefusal(submitter, error);
      return;
    }
    put(part, onDone);
    // The pressed button is gone, and with it the focus.
    place.querySelector('h1[tabindex], h2[tabindex]')?.focus();
    onDone(submitter.value, part.textContent);
  } catch {
    showRefusal(submitter, say('unreachable'));
  } finally {
    submitter.disabled = false;
  }
}

/** Shows the part. Its forms are sent in place, unless their button saves a file. */
function put(part, onDone) {
  place.replaceChildren(document.adoptNode(part));
  for (const form of part.querySelectorAll('form'))
    form.addEventListener('submit', (event) => {
      const { submitter } = event;
      if (!submitter || submitter.dataset.plain !== undefined) return;
      event.preventDefault();
      void send(form, submitter, onDone);
    });
}

/**
 * Shows the answer about the visit of this token.
 * @param onDone gets the act that a form did, and the text of the new part
 * @returns its text, or null if there is none
 */
export async function showAnswer(token, onDone) {
  const { part } = token ? await fetchAnswer(new URLSearchParams({ token })) : { part: null };
  if (part) put(part, onDone);
  return part?.textContent ?? null;
}
