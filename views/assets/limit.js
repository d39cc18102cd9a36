// Says when a text field is nearly full: a browser stops at `maxlength` without a word. Forms that arrive later are covered too.

const NEAR = 200;

const notes = new WeakMap();

function noteOf(field) {
  const known = notes.get(field);
  if (known) return known;
  const note = document.createElement('p');
  note.className = 'quiet small';
  // Screen readers announce the change of its text.
  note.setAttribute('role', 'status');
  (field.closest('label') ?? field).after(note);
  notes.set(field, note);
  return note;
}

/** Pages in other languages than English give the texts with the field. */
function sentence(left, { maxLength, dataset }) {
  if (left === 0) {
    const text = dataset.full ?? 'This is the limit of {limit} characters. Nothing more fits.';
    return text.replace('{limit}', maxLength.toLocaleString(document.documentElement.lang || 'en-GB'));
  }
  return (dataset.left ?? '{count} characters are left.').replace('{count}', left);
}

addEventListener('input', ({ target: field }) => {
  if (!(field instanceof HTMLTextAreaElement) || field.maxLength < 0) return;
  const left = Math.max(0, field.maxLength - field.value.length);
  if (left <= NEAR || notes.has(field)) noteOf(field).textContent = left <= NEAR ? sentence(left, field) : '';
});
