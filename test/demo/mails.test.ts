import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { sendVisit } from '../../src/demo/seed-service.ts';
import { drivenBrowser } from '../../src/demo/visits.ts';
import { gpdJson } from '../support/command.ts';
import { ask, postJson } from '../support/http.ts';
import { startDemoApp } from './support/demo-app.ts';

/** The demo shows the mails that gpd writes; nothing is sent. */

it('the demo shows the mails to staff, and one to a person in their language', {
  timeout: 120_000,
}, async () => {
  const { app, demo, stop } = await startDemoApp();
  onTestFinished(stop);
  const kid = 'demo-shop';
  const origin = `http://localhost:${app.port}`;
  const visit = await sendVisit({ kid, origin }, app.url, drivenBrowser('a mail of the demo'), Date.now());
  const { transparencyToken: token } = (await visit.json()) as { transparencyToken: string };
  const [cookie = ''] = visit.headers.getSetCookie().map((one) => one.split(';')[0]);
  const filed = await postJson(
    app.url,
    '/me',
    { token, action: 'contest', statement: 'I am a person.', email: 'anna@person.example' },
    { origin, cookie, 'accept-language': 'de' },
  );
  const { contestId } = filed.json() as { contestId: string };
  const file = join(demo.directory, 'gpd.toml');
  await gpdJson(['contests', 'ask', contestId, '--question', 'Which browser?', '--config', file]);
  await vi.waitFor(
    async () => {
      const { status, text } = await ask(app.url, '/demo/mails');
      expect(status).toBe(200);
      expect(text).toContain('To anna@person.example');
      expect(text).toMatch(/<h2 dir="auto">localhost:\d+: eine Frage zu Ihrem Einwand<\/h2>/);
      expect(text).toContain('Fragen: privacy@lanterne.example');
      expect(text).toContain('To dora@lanterne.example');
    },
    { timeout: 20_000, interval: 100 },
  );
  expect((await ask(app.url, '/demo')).text).toContain('href="/demo/mails"');
});
