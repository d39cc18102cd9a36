// The setup page asks until the first visit has arrived.
const LOOK_MS = 2000;
const line = document.querySelector('[data-testid="visit"]');

async function look() {
  const answer = await fetch('/setup/visit', { cache: 'no-store' }).catch(() => null);
  // A failed request is retried: the server restarts during the setup.
  const { arrived } = answer?.ok ? await answer.json() : { arrived: false };
  if (arrived) {
    line.textContent = 'The first visit has arrived.';
    line.dataset.kind = 'done';
    line.closest('.step').dataset.done = '';
  } else setTimeout(() => void look(), LOOK_MS);
}

history.replaceState(null, '', '/setup');
void look();
