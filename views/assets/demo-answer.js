// The answer to the person: the same part as on /my-data, which the server renders for the token of a visit.

const place = document.querySelector('[data-part="answer"]');
const { lang } = document.documentElement;

/** @returns the part, or null if the token has no access any longer */
async function fetchAnswer(fields) {
  const reply = await fetch(`/my-data?lang=${lang}`, {
    method: 'POST',
    headers: { accept: 'text/html' },
    body: fields,
  });
  if (!reply.ok) return null;
  const answer = new DOMParser().parseFromString(await reply.text(), 'text/html');
  return answer.querySelector('[data-gpd-held]');
}

/**
 * Sends the form in place, unless its button saves a file. The objection and the erasure answer with a part too.
 * @param onSent gets the part and the name of the act; null: the token is too old
 */
function listenTo(part, onSent) {
  for (const form of part.querySelectorAll('form'))
    form.addEventListener('submit', (event) => {
      const { submitter } = event;
      if (!submitter || submitter.dataset.plain !== undefined) return;
      event.preventDefault();
      const fields = new URLSearchParams(new FormData(form));
      fields.set('action', submitter.value);
      submitter.disabled = true;
      void fetchAnswer(fields)
        .then((next) => {
          if (next) put(next, onSent);
          onSent(next, submitter.value);
        })
        .finally(() => {
          submitter.disabled = false;
        });
    });
}

function put(part, onSent) {
  place.replaceChildren(document.adoptNode(part));
  listenTo(part, onSent);
}

/** Shows the answer about the visit of this token. @returns its text, or null if there is none */
export async function showAnswer(token, onSent) {
  const part = token ? await fetchAnswer(new URLSearchParams({ token })) : null;
  if (part) put(part, onSent);
  return part?.textContent ?? null;
}
