/**
 * Remembers the key of an open case in this browser, on gpd's own pages: storage belongs to their origin, and no other page
 * can read it. The person is told next to a button that forgets it.
 */

const NAME = 'gpd-case';
/** A due date may be extended by 61 days at most; after that nothing is remembered. */
const AFTER_DUE_MS = 61 * 86_400_000;

/** @returns null if nothing is remembered, or storage is closed to pages */
export function read() {
  try {
    const { caseKey, until } = JSON.parse(localStorage.getItem(NAME) ?? 'null') ?? {};
    if (typeof caseKey === 'string' && until > Date.now()) return { caseKey, until };
    localStorage.removeItem(NAME);
  } catch {}
  return null;
}

export function forget() {
  try {
    localStorage.removeItem(NAME);
  } catch {}
}

/** @returns when the browser forgets it by itself; null: it is not remembered */
function remember(caseKey, dueAt) {
  const until = Date.parse(dueAt) + AFTER_DUE_MS;
  try {
    localStorage.setItem(NAME, JSON.stringify({ caseKey, until }));
  } catch {
    return null;
  }
  return until;
}

/** Stores the key that a box names, and shows the box. */
export function fillBox(box) {
  const until = remember(box.dataset.remember, box.dataset.due);
  if (until === null) return;
  const language = document.documentElement.lang;
  const [note, button] = [box.querySelector('[data-note]'), box.querySelector('[data-forget]')];
  const day = new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : language, { dateStyle: 'long' });
  note.textContent = note.dataset.note.replace('{until}', day.format(until));
  button.onclick = () => {
    forget();
    note.textContent = button.dataset.forget;
    note.setAttribute('role', 'status');
    button.hidden = true;
  };
  button.hidden = false;
  box.hidden = false;
}

const filled = new WeakSet();
function fillAll() {
  for (const box of document.querySelectorAll('[data-remember]:not([data-remember=""])')) {
    if (filled.has(box)) continue;
    filled.add(box);
    fillBox(box);
  }
}
// The answer to an objection arrives after the page.
new MutationObserver(fillAll).observe(document.body, { childList: true, subtree: true });
fillAll();
