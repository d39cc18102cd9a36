import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { runProgram, type Spawned, spawnGpd, tempDir } from '../support/command.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';

/** `gpd serve --setup` from its link to the first visit. */

const WAIT = { timeout: 60_000, interval: 50 };

describeInChromium('serve --setup', () => {
  const cwd = tempDir('setup');
  const { openTab, faults } = useTabs();
  let gpd: Spawned;
  let shop: Server;
  let origin: string;
  let snippet = '';

  beforeAll(async () => {
    shop = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(
        `<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,">${snippet}`,
      );
    });
    await new Promise<void>((resolve) => shop.listen(0, 'localhost', resolve));
    origin = `http://localhost:${(shop.address() as AddressInfo).port}`;
    gpd = spawnGpd(['serve', '--setup', '--port', '0', '--json'], {
      cwd,
      env: { GPD_DATA_DIR: join(cwd, 'data') },
    });
  });
  afterAll(async () => {
    shop?.close();
    gpd?.child.kill('SIGTERM');
    await gpd?.exited;
  });

  it('makes an installation, shows the snippet, and sees the first visit', async () => {
    await vi.waitFor(() => expect(gpd.output.stdout).toContain('\n'), WAIT);
    const { setup } = JSON.parse(gpd.output.stdout.split('\n')[0] ?? '') as { setup: string };
    const page = await openTab(setup);
    await page.getByRole('button', { name: 'Begin' }).click();
    expect(await page.locator('ol.steps > li h2').count()).toBe(3);
    expect(await page.getByLabel('Public address of this server').inputValue()).toBe(new URL(setup).origin);
    await page.getByLabel('Tenant').fill('a|b');
    await page.getByLabel('Origin of its pages').fill(origin);
    await page.getByLabel('Controller').fill('Shop Ltd, 1 High Street, Dublin');
    await page.getByLabel('Contact').fill('privacy@shop.example');
    await page.getByRole('button', { name: 'Make the keys' }).click();
    await page.getByRole('alert').getByText('Enter a short name').waitFor();
    await page.getByRole('link', { name: /Enter a short name/ }).click();
    expect(await page.evaluate('document.activeElement.id')).toBe('tenant');
    await page.getByLabel('Tenant').fill('shop');
    await page.getByRole('button', { name: 'Make the keys' }).click();
    await page.getByText('Waiting for the first visit').waitFor();
    snippet = (await page.getByTestId('snippet').textContent()) ?? '';
    expect(readFileSync(join(cwd, 'gpd.toml'), 'utf8')).toContain(new URL(setup).origin);

    // That address now serves a page of the tenant with the snippet as the setup page shows it.
    await vi.waitFor(() => expect(gpd.output.stdout.split('\n')).toHaveLength(3), WAIT);
    const visitor = await page.context().newPage();
    await visitor.goto(origin);
    await visitor.getByTestId('consent-accept').click();
    await page.getByText('The first visit has arrived.').waitFor({ timeout: WAIT.timeout });
    await page.locator('[data-step="pages"][data-done] [data-kind="done"]').waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy' }).first().click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(snippet);

    // The backend's first check ticks its step while the page is open.
    await page.getByRole('button', { name: 'Make a secret key' }).click();
    const environment = (await page.getByTestId('environment').textContent()) ?? '';
    const [, url = '', key = ''] = /URL=(\S+)\nexport GPD_CONSENT_KEY=(\S+)/.exec(environment) ?? [];
    await fetch(`${url}/v1/consent/can-process`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"principalId":"u-1","purpose":"device-identification"}',
    });
    await page.locator('[data-step="check"][data-done] [data-kind="done"]').waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);

    // The first member of the staff is invited here, the next ones by the command.
    await page.getByLabel('Name').fill('rosa@shop.example');
    await page.getByRole('button', { name: 'Make an invitation link' }).click();
    await page.getByRole('alert').getByText('Enter a name').waitFor();
    await page.getByLabel('Name').fill('Rosa M.');
    await page.getByRole('button', { name: 'Make an invitation link' }).click();
    const link = (await page.getByTestId('invitation').textContent()) ?? '';
    expect(link).toMatch(/\/console\/join#Rosa%20M\.\.[\w-]{43}$/);
    const joining = await page.context().newPage();
    await joining.goto(link);
    await joining.getByRole('button', { name: /passkey/i }).waitFor();
    await page.goto(setup);
    expect(await page.getByText('Somebody is invited.').count()).toBe(1);
    expect(await page.content()).not.toContain('Make an invitation link');
    const shown = await runProgram(['tenants', 'show', 'shop'], {
      cwd,
      env: { GPD_DATA_DIR: join(cwd, 'data') },
    });
    expect(shown.stdout).toContain('Shop Ltd, 1 High Street, Dublin');
    await page.reload();
    await page.getByTestId('snippet').waitFor();
    expect(faults.filter((line) => !line.startsWith('Failed to load'))).toEqual([]);
  });
});
