/** Buttons of the parts that need a script: they are hidden without one. Parts that arrive later are covered too. */

const show = () => {
  for (const button of document.querySelectorAll('[data-copy][hidden], [data-print][hidden]'))
    button.hidden = button.dataset.copy !== undefined && !navigator.clipboard;
};
show();
new MutationObserver(show).observe(document.body, { childList: true, subtree: true });

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  // Screen readers announce it, because the button has the focus.
  button.setAttribute('aria-live', 'polite');
  button.textContent = button.dataset.copied;
}

addEventListener('click', ({ target }) => {
  const button = target instanceof Element && target.closest('[data-copy], [data-print]');
  if (!button) return;
  if (button.dataset.copy === undefined) print();
  else void copy(button);
});

// The switch of languages keeps what is behind the #, which no server sees.
addEventListener('click', ({ target }) => {
  const link = target instanceof Element && target.closest('.languages a[hreflang]');
  if (link && link.hash === '') link.hash = location.hash;
});
