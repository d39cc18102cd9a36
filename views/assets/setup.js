// The page Next asks until all of its steps have happened.
const LOOK_MS = 2000;

async function look() {
  const answer = await fetch('/setup/steps', { cache: 'no-store' }).catch(() => null);
  // A failed request is retried: the server restarts during the setup.
  const steps = answer?.ok ? await answer.json() : {};
  for (const step of document.querySelectorAll('.step:not([data-done])')) {
    if (!steps[step.dataset.step]) continue;
    step.dataset.done = '';
    const line = step.querySelector('[data-done-text]');
    if (!line) continue;
    line.textContent = line.dataset.doneText;
    line.dataset.kind = 'done';
  }
  if (document.querySelector('.step:not([data-done])')) setTimeout(() => void look(), LOOK_MS);
}

// A reload asks for the page again, not for the form that led here or the used link.
const lang = new URLSearchParams(location.search).get('lang');
history.replaceState(null, '', lang === null ? '/setup' : `/setup?${new URLSearchParams({ lang })}`);
void look();
