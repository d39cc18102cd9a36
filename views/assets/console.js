/** Conveniences for the console; every page also works without this script. */

for (const text of document.querySelectorAll('[data-scripted]')) text.hidden = false;

/* Shows times in the viewer's zone; the exact time stays in `title`. */
const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
for (const time of document.querySelectorAll('time[data-zone]')) {
  time.textContent = format.format(new Date(time.dateTime));
}
for (const zone of document.querySelectorAll('[data-zone-name]')) {
  zone.textContent = format.resolvedOptions().timeZone.split('/').at(-1).replaceAll('_', ' ');
}

/* On a narrow screen the sidebar is a strip that scrolls. */
const strip = document.querySelector('.side nav');
const here = strip?.querySelector('[aria-current]');
if (here) strip.scrollLeft = here.offsetLeft - strip.clientWidth / 2;

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

/* How much of a limit is used. It is read with the field only on request: each letter would announce it. */
const count = new Intl.NumberFormat('en-GB');
for (const field of document.querySelectorAll('.field textarea[maxlength]')) {
  const counter = document.createElement('p');
  counter.className = 'counter quiet small';
  const show = () => {
    counter.textContent = `${count.format(field.value.length)} of ${count.format(field.maxLength)}`;
  };
  show();
  field.addEventListener('input', show);
  field.after(counter);
}

/* A template leaves a gap, which the first letter replaces. Before `load`, the jump to the fragment would end the focus. */
const GAP = '[…]';
const reason = document.getElementById('reason');
const gapAt = reason?.value.indexOf(GAP) ?? -1;
if (gapAt !== -1 && location.hash === '#resolve') {
  addEventListener('load', () => {
    reason.focus();
    reason.setSelectionRange(gapAt, gapAt + GAP.length);
  });
}

/* Ctrl or Cmd with Enter presses the button of the form that is written in; it may still refuse. */
document.addEventListener('keydown', ({ key, ctrlKey, metaKey, target }) => {
  if (key !== 'Enter' || !(ctrlKey || metaKey) || !(target instanceof HTMLTextAreaElement)) return;
  target.closest('[data-panel], form')?.querySelector('button:not([name])')?.click();
});

const rows = [...document.querySelectorAll('[data-row]')];
const help = document.getElementById('help');
let opener = null;

/* Without a list, the keys walk to the page before or after this one. */
function move(step) {
  if (rows.length === 0) {
    document.querySelector(step > 0 ? 'a[rel="next"]' : 'a[rel="prev"]')?.click();
    return;
  }
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[at === -1 ? 0 : at + step]?.querySelector('[data-open]')?.focus();
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

/* WCAG 2.1.4: speech input sends letters too, so single-character shortcuts can be turned off in this browser. */
const KEYS_OFF = 'gpd-keys-off';
function areKeysOff() {
  try {
    return localStorage.getItem(KEYS_OFF) !== null;
  } catch {
    return false;
  }
}

for (const toggle of document.querySelectorAll('[data-keys]')) {
  const describe = () => {
    toggle.textContent = areKeysOff() ? 'Turn the shortcuts on' : 'Turn the shortcuts off';
  };
  describe();
  toggle.hidden = false;
  toggle.addEventListener('click', () => {
    try {
      if (areKeysOff()) localStorage.removeItem(KEYS_OFF);
      else localStorage.setItem(KEYS_OFF, 'yes');
    } catch {
      // A browser without storage keeps the shortcuts on.
    }
    describe();
  });
}

document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (key === 'Escape' && help && !help.hidden) toggleHelp();
  const typing = target instanceof Element && target.closest('input, select, textarea');
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const row = rows.find((one) => one.contains(document.activeElement));
  if (areKeysOff() || !Object.hasOwn(keys, key) || (keys[key].length > 0 && !row)) return;
  event.preventDefault();
  keys[key](row);
});
