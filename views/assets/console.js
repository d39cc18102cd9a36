/** Conveniences for the console; every page also works without this script. */

const root = document.documentElement;
root.classList.add('scripted');

/* Shows times in the viewer's zone; the exact time stays in `title`. */
const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
for (const time of document.querySelectorAll('time[data-zone]')) {
  time.textContent = format.format(new Date(time.dateTime));
}

/* A form is sent once: a second click would find the case changed by the first. */
for (const form of document.querySelectorAll('form[method="post"]')) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = 'yes';
  });
}
window.addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form')) delete form.dataset.sent;
});

const rows = [...document.querySelectorAll('[data-row]')];
const help = document.getElementById('help');
let opener = null;

function move(step) {
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[at + step]?.querySelector('[data-open]')?.focus();
}

function toggleHelp() {
  if (!help) return;
  help.hidden = !help.hidden;
  if (!help.hidden) {
    opener = document.activeElement;
    help.tabIndex = -1;
    help.focus();
  } else if (opener instanceof HTMLElement) opener.focus();
}

/* Shortcuts never change data, because a letter can be pressed by mistake. */
const keys = {
  j: () => move(1),
  k: () => move(-1),
  o: (row) => row.querySelector('[data-open]')?.click(),
  c: (row) => row.querySelector('[data-claim]')?.focus(),
  '?': toggleHelp,
};

document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (key === 'Escape' && help && !help.hidden) toggleHelp();
  const typing = target instanceof Element && target.closest('input, select, textarea');
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  // WCAG 2.1.4: a single-character shortcut only works while the list has the focus.
  const row = rows.find((one) => one.contains(document.activeElement));
  if (!row || !Object.hasOwn(keys, key)) return;
  event.preventDefault();
  keys[key](row);
});
