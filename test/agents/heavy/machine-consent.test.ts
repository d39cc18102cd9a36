import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, it, vi } from 'vitest';
import { CHROMIUM_ARGS, findChromium } from '../../browser/support/chromium.ts';
import { AGENT, ANALYTICS, NONCE, type Shop, startShop } from '../../browser/support/shop.ts';
import { cleanEnvironment, tempDir } from '../../support/command.ts';
import { started } from '../../support/started.ts';
import { describeWithTool } from '../../support/tools.ts';

/** Browsing agents of others press *Accept*, each through its own tools as a model would call them: read the page, click. */

const folder = tempDir('machines');
const chromium = findChromium() ?? '';

/** Names of a server's tools, and their input. */
interface Machine {
  readonly command: readonly string[];
  readonly open: readonly [tool: string, input: (url: string) => object];
  readonly look: string;
  /** The first group is the name of the button in the text of a snapshot. */
  readonly button: (name: string) => RegExp;
  readonly click: readonly [tool: string, input: (id: string) => object];
  readonly evaluate: string;
}

const MACHINES: Readonly<Record<string, Machine>> = {
  '@playwright/mcp': {
    command: [
      ...['@playwright/mcp/cli.js', '--headless', '--no-sandbox', '--isolated'],
      ...['--executable-path', chromium],
    ],
    open: ['browser_navigate', (url) => ({ url })],
    look: 'browser_snapshot',
    // Its snapshot leaves the banner out, so the agent is told where the button is.
    button: () => /Page URL/,
    click: ['browser_click', () => ({ element: 'Accept', target: '[data-testid="consent-accept"]' })],
    evaluate: 'browser_evaluate',
  },
  'chrome-devtools-mcp': {
    command: [
      ...['chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js', '--headless', '--isolated'],
      ...['--no-usageStatistics', '--no-pageIdRouting', '--executablePath', chromium],
      ...CHROMIUM_ARGS.map((arg) => `--chromeArg=${arg}`),
    ],
    open: ['navigate_page', (url) => ({ type: 'url', url })],
    look: 'take_snapshot',
    button: (name) => new RegExp(`uid=(\\w+) button "${name}"`),
    click: ['click', (uid) => ({ uid })],
    evaluate: 'evaluate_script',
  },
};

/** @returns why the agents cannot be had, or null */
function installMachines(): string | null {
  if (chromium === '') return 'Chromium is not installed';
  writeFileSync(join(folder, 'package.json'), '{}');
  const packages = ['@playwright/mcp@0.0.83', 'chrome-devtools-mcp@1.11.0'];
  const words = ['install', '--no-audit', '--no-fund', '--silent', ...packages];
  const ran = spawnSync('npm', words, { cwd: folder, encoding: 'utf8' });
  return ran.status === 0 ? null : `npm with access to its registry is needed: ${ran.stderr.slice(0, 200)}`;
}

async function drive(machine: Machine) {
  const [file = '', ...args] = machine.command;
  const env = cleanEnvironment({ HOME: folder }) as Record<string, string>;
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(
    new StdioClientTransport({
      ...{ command: process.execPath, args: [join(folder, 'node_modules', file), ...args] },
      ...{ env, cwd: folder, stderr: 'ignore' },
    }),
  );
  async function call(name: string, input: object = {}): Promise<string> {
    const answer = await client.callTool({ name, arguments: { ...input } });
    const { isError = false, content } = answer as { isError?: boolean; content: { text?: string }[] };
    const text = content.map((part) => part.text ?? '').join('\n');
    if (isError) throw new Error(`${name}: ${text}`);
    return text;
  }
  const [openTool, openInput] = machine.open;
  const [clickTool, clickInput] = machine.click;
  /** The id of a button that the agent finds in the page. */
  const see = async (name: string): Promise<string> => {
    const found = machine.button(name).exec(await call(machine.look));
    if (found === null) throw new Error(`the agent sees no button ${name}`);
    return found[1] ?? '';
  };
  return {
    open: (url: string) => call(openTool, openInput(url)),
    see: (name: string) => vi.waitFor(() => see(name), { timeout: 60_000, interval: 500 }),
    click: (id: string) => call(clickTool, clickInput(id)),
    evaluate: (code: string) => call(machine.evaluate, { function: code }),
    close: () => client.close(),
  };
}

/** A visit is judged as soon as device recognition is allowed. */
const pageOf = (shop: Shop): string =>
  shop.page({
    after: `<script type="module" nonce="${NONCE}">
      window.identified = window.identify('http://localhost:${shop.api.gpd.port}');</script>`,
  });

describeWithTool(
  'agents of others',
  installMachines(),
  () => {
    const shop = started(async () => {
      const all = await startShop({ settings: { 'consent.byAutomation': 'deny' } });
      return { ...all, stop: () => all.close() };
    });

    it.each(Object.keys(MACHINES))('%s presses Accept, and gpd says so', async (name) => {
      const machine = await drive(MACHINES[name]!);
      try {
        const url = pageOf(shop);
        await machine.open(url);
        await machine.click(await machine.see('Accept'));
        expect(await machine.evaluate('() => window.identified')).toContain('"sent"');
        const [id = ''] = /b_[\w-]{43}/.exec(await machine.evaluate('() => gpd.consent.receipt()')) ?? [];
        for (const purpose of [AGENT, ANALYTICS])
          expect(await shop.api.check(id, purpose)).toMatchObject({ reason: 'doubted', given: 'automation' });
        const doubt = { class: 'undeclared_automation', source: 'ingest' };
        expect(await shop.api.events(id)).toContainEqual(expect.objectContaining(doubt));
        await machine.open(url);
        await vi.waitFor(
          async () =>
            expect(
              await machine.evaluate('() => gpd.consent.ready.then(() => gpd.consent.state().phase)'),
            ).toContain('asking'),
          { timeout: 60_000, interval: 500 },
        );
      } finally {
        await machine.close();
      }
    });
  },
  { optional: true },
);
