// Signs staff in with a passkey: the page contains the challenge, and its form sends the browser's answer.
import { ask } from '/v1/agent-passkey.js';

const form = document.querySelector('form[data-offer]');
const button = form.querySelector('button');
const status = form.querySelector('[role="status"]');
const offer = JSON.parse(form.dataset.offer);

// The invitation is in the fragment as NAME.SECRET, because browsers never send fragments to servers or proxies.
const invitation = /^#(.+)\.([\w-]{43})$/.exec(location.hash);
if (invitation) {
  const [, name, secret] = invitation;
  // A link of the switch opens the page again, which needs the invitation again.
  for (const link of document.querySelectorAll('.languages a')) link.hash = location.hash;
  history.replaceState(null, '', location.pathname + location.search);
  form.elements.invitation.value = secret;
  offer.publicKey.user.name = offer.publicKey.user.displayName = decodeURIComponent(name);
}

// A new passkey would be useless without an invitation.
const isWhole = offer.ceremony === 'get' || invitation !== null;
button.hidden = !isWhole;
if (!isWhole) status.textContent = status.dataset.whole;
async function answer() {
  button.disabled = true;
  status.textContent = '';
  try {
    form.elements.answer.value = JSON.stringify(await ask(offer));
    form.submit();
  } catch {
    button.disabled = false;
    status.textContent = status.dataset.failed;
  }
}

button.addEventListener('click', () => void answer());
