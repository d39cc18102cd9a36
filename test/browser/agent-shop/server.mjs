// @ts-nocheck: a shop has no types.
import { randomUUID } from 'node:crypto';
import { ConsentClient, verifyWebhook } from '@gpd/consent';
import express from 'express';

// A shop that was integrated from the prompt of docs/coding-agents.md and the pages it names, nothing else.

const { GPD_CONSENT_URL, GPD_PUBLISHABLE_KEY, WEBHOOK_SECRET, PORT } = process.env;
const gpd = ConsentClient.fromEnv();
const app = express();

/** The shop's database. `subject` and `ref` are gpd's references, by which an erasure finds the rows. */
const db = { subscribers: [], orders: [] };
const users = new Map([
  ['alice', 'wonderland'],
  ['bob', 'builder'],
]);
const sessions = new Map();
const customerOf = ({ headers }) => sessions.get(/(?:^|; )sid=([\w-]+)/.exec(headers.cookie ?? '')?.[1]);

const POLICY = [
  "default-src 'self'",
  `script-src 'self' ${GPD_CONSENT_URL}`,
  `connect-src 'self' ${GPD_CONSENT_URL}`,
  "worker-src 'self'",
  "frame-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
].join('; ');

app.use((_request, response, next) => {
  response.set('Content-Security-Policy', POLICY);
  next();
});

const LOGIN = `<form method="post" action="/login">
    <input name="customer"> <input name="password" type="password"> <button>Log in</button>
  </form>`;
const account = (customer) => `<p>Hello ${customer}</p>
  <form method="post" action="/subscribe"><input name="email"> <button>Subscribe</button></form>
  <form method="post" action="/delete-account"><button>Delete my account</button></form>`;

const page = (offers, customer) => `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>Shop</title>
  <script src="${GPD_CONSENT_URL}/v1/embed.js" data-key="${GPD_PUBLISHABLE_KEY}" data-store="cookie" defer></script>
  <script type="module" src="/shop.js" data-server="${GPD_CONSENT_URL}"></script>
  <script type="text/plain" data-purpose="analytics" data-src="/stats.js"></script>
  <h1>Shop</h1>
  ${customer ? account(customer) : LOGIN}
  ${offers ? '<section id="offers">Offers for you</section>' : ''}
  <iframe data-purpose="video" data-src="/video.html" width="560" height="315" title="How it is made"></iframe>
  <button id="order">Order</button> <output></output>
  <a href="/privacy" data-gpd-choices>Privacy choices</a>
</html>`;

app.get('/', async (request, response) => {
  const principalId = customerOf(request);
  // A customer's answer needs gpd; the page is shown without it too.
  const may = await gpd.may(request, ['offers'], { principalId }).catch(() => null);
  if (may?.setCookie) response.append('Set-Cookie', may.setCookie);
  response.set('Cache-Control', 'private, no-store');
  response.send(page(may?.allows('offers') ?? false, principalId));
});
app.get('/favicon.ico', (_request, response) => response.sendStatus(204));
app.get('/privacy', (_request, response) => response.send('<h1>Privacy</h1>'));
app.get('/video.html', (_request, response) => response.send('<p>How it is made</p>'));
app.get('/stats.js', (_request, response) => response.type('js').send('window.counted = true;'));
app.use('/shop.js', express.static(new URL('shop.js', import.meta.url).pathname));

app.get('/agent-worker.js', async (_request, response) => {
  const file = await fetch(`${GPD_CONSENT_URL}/v1/agent-worker.js`).catch(() => null);
  if (!file?.ok) return response.sendStatus(502);
  response.type('js').send(await file.text());
});

const form = express.urlencoded({ extended: false });
app.post('/login', form, (request, response) => {
  const { customer, password } = request.body ?? {};
  if (!users.has(customer) || users.get(customer) !== password) return response.sendStatus(401);
  const sid = randomUUID();
  sessions.set(sid, customer);
  response.cookie('sid', sid, { httpOnly: true, sameSite: 'lax' }).redirect(303, '/');
});
app.post('/gpd-session', async (request, response) => {
  const customer = customerOf(request);
  if (!customer) return response.sendStatus(401);
  const { token } = await gpd.sessions.create(customer);
  response.set('Cache-Control', 'no-store').json({ token });
});

app.post('/subscribe', form, async (request, response) => {
  const customer = customerOf(request);
  if (!customer) return response.sendStatus(401);
  const { subject } = await gpd.sessions.create(customer);
  db.subscribers.push({ customer, subject, email: request.body.email });
  response.redirect(303, '/');
});
app.post('/delete-account', async (request, response) => {
  const customer = customerOf(request);
  if (!customer) return response.sendStatus(401);
  // First there: if gpd does not answer, the account is still here and the person can try again.
  const { token } = await gpd.sessions.create(customer);
  await gpd.erase(token);
  users.delete(customer);
  for (const [sid, name] of sessions) if (name === customer) sessions.delete(sid);
  db.subscribers = db.subscribers.filter((row) => row.customer !== customer);
  response.clearCookie('sid').redirect(303, '/');
});
/** The monthly job: asks for each person, right before it would write. */
app.get('/newsletter', async (_request, response) => {
  const rows = await Promise.all(
    db.subscribers.map(async ({ customer, email }) => {
      const isAllowed = await gpd.isAllowed({ principalId: customer, purpose: 'newsletter' });
      return isAllowed ? [email] : [];
    }),
  );
  response.json(rows.flat());
});

app.post('/order', express.json(), (request, response) => {
  const order = { order: db.orders.length + 1, ref: null, visitor: null };
  db.orders.push(order);
  response.status(201).json({ order: order.order });
  // The purchase does not wait for the verdict.
  const { requestId } = request.body;
  if (typeof requestId !== 'string') return;
  gpd.decision(requestId).then(
    ({ ref, class: visitor }) => Object.assign(order, { ref, visitor }),
    () => {},
  );
});

app.post('/hooks', express.raw({ type: 'application/json' }), (request, response) => {
  let event;
  try {
    event = verifyWebhook(request.body, request.headers, { secrets: WEBHOOK_SECRET });
  } catch {
    return response.sendStatus(400);
  }
  const { subject, ref } = event.data;
  if (event.type === 'subject.erased')
    db.subscribers = db.subscribers.filter((row) => row.subject !== subject);
  if (event.type === 'decision.erased')
    for (const order of db.orders) if (order.ref === ref) Object.assign(order, { ref: null, visitor: null });
  response.sendStatus(204);
});
app.get('/rows', (_request, response) => {
  response.json({
    subscribers: db.subscribers.map(({ email }) => email),
    orders: db.orders.map(({ order, visitor }) => ({ order, visitor })),
  });
});

app.listen(Number(PORT), 'localhost');
