import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, it, vi } from 'vitest';
import { CHROMIUM_ARGS, findChromium } from '../../browser/support/chromium.ts';
import { AGENT, ANALYTICS, NONCE, type Shop, startShop } from '../../browser/support/shop.ts';
import { createBrowser } from '../../consent/app/support/api.ts';
import { cleanEnvironment, tempDir } from '../../support/command.ts';
import { started } from '../../support/started.ts';
import { describeWithTool } from '../../support/tools.ts';

/** Browsing agents of others press *Accept*, each through its own tools as a model would call them: read the page, click. */

const folder = tempDir('machines');
const chromium = findChromium() ?? '';

const python = join(folder, 'venv', 'bin', 'python');

/** Names of a server's tools, and their input. */
interface Machine {
  readonly command: readonly string[];
  readonly open: readonly [tool: string, input: (url: string) => object];
  readonly look: string;
  /** The first group is the name of the button in the text of a snapshot. */
  readonly button: (name: string) => RegExp;
  readonly click: readonly [tool: string, input: (id: string, name: string) => object];
  /** Reads the element with what the page found out. */
  readonly read: readonly [tool: string, input: object];
}

const clickAt = (place: string): object => {
  const [x, y] = place.split(' ').map(Number);
  return { coordinate_x: x, coordinate_y: y };
};

const node = (file: string): string[] => [process.execPath, join(folder, 'node_modules', file)];
const TEXT = '() => document.getElementById("facts").textContent';

const MACHINES: Readonly<Record<string, Machine>> = {
  '@playwright/mcp': {
    command: [
      ...node('@playwright/mcp/cli.js'),
      ...['--headless', '--no-sandbox', '--isolated', '--executable-path', chromium],
    ],
    open: ['browser_navigate', (url) => ({ url })],
    look: 'browser_snapshot',
    // Its snapshot leaves the banner out, so the agent is told where the button is.
    button: () => /Page URL/,
    click: ['browser_click', (_id, name) => ({ element: name, target: TARGETS[name] })],
    read: ['browser_evaluate', { function: TEXT }],
  },
  'chrome-devtools-mcp': {
    command: [
      ...[...node('chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js'), '--headless', '--isolated'],
      ...['--no-usageStatistics', '--no-pageIdRouting', '--executablePath', chromium],
      ...CHROMIUM_ARGS.map((arg) => `--chromeArg=${arg}`),
    ],
    open: ['navigate_page', (url) => ({ type: 'url', url })],
    look: 'take_snapshot',
    button: (name) => new RegExp(`uid=(\\w+) button "${name}"`),
    click: ['click', (uid) => ({ uid })],
    read: ['evaluate_script', { function: TEXT }],
  },
  'browser-use': {
    command: [python, '-m', 'browser_use.mcp'],
    open: ['browser_navigate', (url) => ({ url })],
    look: 'browser_get_html',
    // A model takes the place from a screenshot. By number this agent calls `click()` of a button in a shadow
    // tree, because it takes the host for something in front of it, and the banner ignores clicks of scripts.
    button: (name) => new RegExp(`${name} at (\\d+ \\d+)`),
    click: ['browser_click', clickAt],
    read: ['browser_get_html', { selector: '#facts' }],
  },
};

const BROWSER_USE = {
  browser_profile: {
    test: {
      ...{ id: 'test', default: true, headless: true, executable_path: chromium, args: CHROMIUM_ARGS },
      ...{ enable_default_extensions: false, chromium_sandbox: false },
    },
  },
  llm: {},
  agent: {},
};

/** @returns why the agents cannot be had, or null */
function installMachines(): string | null {
  if (chromium === '') return 'Chromium is not installed';
  writeFileSync(join(folder, 'package.json'), '{}');
  writeFileSync(join(folder, 'config.json'), JSON.stringify(BROWSER_USE));
  const packages = ['@playwright/mcp@0.0.83', 'chrome-devtools-mcp@1.11.0'];
  const commands = [
    ['npm', 'install', '--no-audit', '--no-fund', '--silent', ...packages],
    ['python3', '-m', 'venv', 'venv'],
    [python, '-m', 'pip', 'install', '--quiet', 'browser-use==0.13.14'],
  ];
  for (const [command = '', ...words] of commands) {
    const ran = spawnSync(command, words, { cwd: folder, encoding: 'utf8' });
    if (ran.status !== 0) return `npm and pip with access to their registries: ${ran.stderr.slice(0, 200)}`;
  }
  return null;
}

async function drive(machine: Machine) {
  const [command = '', ...args] = machine.command;
  const env = cleanEnvironment({
    ...{ HOME: tempDir('home'), BROWSER_USE_CONFIG_DIR: folder, ANONYMIZED_TELEMETRY: 'false' },
    BROWSER_USE_VERSION_CHECK: 'false',
  }) as Record<string, string>;
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command, args, env, cwd: folder, stderr: 'ignore' }));
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
  const read = () => call(...machine.read);
  return {
    open: (url: string) => call(openTool, openInput(url)),
    press: async (name: string) => {
      const id = await vi.waitFor(() => see(name), { timeout: 60_000, interval: 500 });
      await call(clickTool, clickInput(id, name));
    },
    reads: (pattern: RegExp) =>
      vi.waitFor(async () => expect(await read()).toMatch(pattern), { timeout: 60_000, interval: 500 }),
    read,
    close: () => client.close(),
  };
}

const TARGETS: Readonly<Record<string, string>> = {
  Accept: '[data-testid="consent-accept"]',
  'Allow all': '#allow',
};

const script = (code: string): string => `<p id="facts"></p>
  <script type="module" nonce="${NONCE}">const facts = document.getElementById('facts');
    const place = (name, button) => {
      const { x, y, width, height } = button.getBoundingClientRect();
      facts.append(name + ' at ' + Math.round(x + width / 2) + ' ' + Math.round(y + height / 2) + ' ');
    };
    ${code}</script>`;

/** A visit is judged as soon as device recognition is allowed; the banner asks. */
const bannerPage = (shop: Shop): string =>
  shop.page({
    after: script(`
      gpd.consent.ready.then(() => {
        const roots = [...document.querySelectorAll('*')].flatMap(({ shadowRoot }) => shadowRoot ?? []);
        const accept = roots.map((root) => root.querySelector('${TARGETS['Accept']}')).find(Boolean);
        // It is where it stays once it has slid in.
        if (accept) setTimeout(() => place('Accept', accept), 2000);
        facts.append('phase ' + gpd.consent.state().phase + ' ');
      });
      const { sent } = await window.identify('http://localhost:${shop.api.gpd.port}');
      const { principalId, proof } = await gpd.consent.receipt();
      facts.append('sent ' + sent + ' as ' + principalId + ' seq ' + proof.seq);`),
  });

/** The page asks with a button that it brings itself, and writes the receipt for the agent. */
const buttonPage = (shop: Shop): string => {
  const { principalId, principalSecret } = createBrowser();
  const purposes = JSON.stringify([AGENT, ANALYTICS]);
  return shop.page({
    body: '<button id="allow" type="button">Allow all</button>',
    after: script(`
      place('Allow all', document.getElementById('allow'));
      document.getElementById('allow').addEventListener('click', async () => {
        const answer = await fetch('http://localhost:${shop.api.gpd.port}/v1/consent/grant', {
          method: 'POST',
          headers: { authorization: 'Bearer ${shop.api.keys.publishable}', 'content-type': 'application/json' },
          body: JSON.stringify({ purposes: ${purposes}, principalId: '${principalId}',
            principalSecret: '${principalSecret}' }),
        });
        const { entries } = await answer.json();
        const { seq, hash } = entries.find(({ purpose }) => purpose === '${AGENT}');
        const receipt = { purposes: ${purposes}, gpc: false, version: 1, issuedAt: Date.now(),
          principalId: '${principalId}', proof: { seq, hash } };
        const { sent } = await window.identify('http://localhost:${shop.api.gpd.port}', receipt);
        facts.append('sent ' + sent + ' as ${principalId} seq ' + seq);
      });`),
  });
};

describeWithTool(
  'agents of others',
  installMachines(),
  () => {
    const shop = started(async () => {
      const all = await startShop({ settings: { 'consent.byAutomation': 'deny' } });
      return { ...all, stop: () => all.close() };
    });

    /** Check, history and signed receipt say of the grant that a program gave it. */
    async function expectByProgram(facts: string): Promise<void> {
      const { id = '', seq = '' } = /as (?<id>b_[\w-]{43}) seq (?<seq>\d+)/.exec(facts)?.groups ?? {};
      for (const purpose of [AGENT, ANALYTICS])
        expect(await shop.api.check(id, purpose)).toMatchObject({ reason: 'doubted', given: 'automation' });
      const doubt = { class: 'undeclared_automation', source: 'ingest' };
      expect(await shop.api.events(id)).toContainEqual(expect.objectContaining(doubt));
      const { receipt } = (await shop.api.get(`/v1/consent/receipts/${seq}`)).json() as { receipt: object };
      expect(receipt).toMatchObject({ consent: { status: 'granted', given: 'automation' } });
    }

    it.each(Object.keys(MACHINES))('%s presses Accept, and gpd says so', async (name) => {
      const machine = await drive(MACHINES[name]!);
      try {
        const url = bannerPage(shop);
        await machine.open(url);
        await machine.press('Accept');
        await machine.reads(/sent true/);
        await expectByProgram(await machine.read());
        await machine.open(url);
        await machine.reads(/phase asking/);
      } finally {
        await machine.close();
      }
    });

    it.each(Object.keys(MACHINES))('%s presses a button of the page, and gpd says so', async (name) => {
      const machine = await drive(MACHINES[name]!);
      try {
        await machine.open(buttonPage(shop));
        await machine.press('Allow all');
        await machine.reads(/sent true/);
        await expectByProgram(await machine.read());
      } finally {
        await machine.close();
      }
    });
  },
  { optional: true },
);
