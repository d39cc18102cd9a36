/** Comfort for the console; every page works without it. */

const root = document.documentElement;
root.classList.add('scripted');

/* Times in the viewer's zone; the exact moment stays in `title`. */
const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
for (const time of document.querySelectorAll('time[data-zone]')) {
  time.textContent = format.format(new Date(time.dateTime));
}

/* A form goes out once: a second click would find the case changed by the first. */
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
  const next = rows[at === -1 ? (step > 0 ? 0 : rows.length - 1) : at + step];
  next?.querySelector('[data-open]')?.focus();
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

const keys = {
  j: () => move(1),
  k: () => move(-1),
  o: () =>
    rows
      .find((row) => row.contains(document.activeElement))
      ?.querySelector('[data-open]')
      ?.click(),
  c: () => {
    const row = rows.find((one) => one.contains(document.activeElement));
    (row ?? (rows.length === 0 ? document : null))?.querySelector('[data-claim]')?.click();
  },
  '?': toggleHelp,
};

document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (key === 'Escape' && help && !help.hidden) toggleHelp();
  const typing = target instanceof Element && target.closest('input, select, textarea');
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (!Object.hasOwn(keys, key)) return;
  event.preventDefault();
  keys[key]();
});
