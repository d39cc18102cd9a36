import { expect, it, onTestFinished } from 'vitest';
import { sendVisit } from '../../src/demo/seed-service.ts';
import { personBrowser } from '../../src/demo/visits.ts';
import { ask } from '../support/http.ts';
import { startUnfilled } from './support/demo-app.ts';

it('the tour is there before its past, and every other request waits for that', async () => {
  const { app, demo, stop } = await startUnfilled();
  onTestFinished(stop);
  const order: string[] = [];
  const note = (name: string) => (): void => void order.push(name);
  const shop = { kid: 'demo-shop', origin: `http://localhost:${app.port}` };
  const waiting = [
    ask(app.url, '/readyz').then(note('readyz')),
    ask(app.url, '/console').then(note('console')),
    sendVisit(shop, app.url, personBrowser('early'), Date.now()).then(async (answer) => {
      order.push(((await answer.json()) as { reason: string }).reason);
    }),
  ];
  for (const path of ['/', '/demo', '/demo?lang=de', '/assets/demo.js', '/v1/embed.js', '/v1/agent.js']) {
    const { status } = await ask(app.url, path);
    expect(status, path).toBeLessThan(400);
  }
  expect(order).toEqual([]);
  await demo.fill();
  await Promise.all(waiting);
  expect(order.toSorted()).toEqual(['console', 'ok', 'readyz']);
});
