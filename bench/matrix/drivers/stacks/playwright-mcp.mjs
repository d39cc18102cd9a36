// Playwright's server for language models, asked by hand: JSON-RPC 2.0, a line a message (Model Context Protocol, stdio).
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { chromium, headless, installed, profile, url } from './stack.mjs';

const server = spawn(
  process.execPath,
  [
    installed('node_modules/@playwright/mcp/cli.js'),
    `--executable-path=${chromium}`,
    `--user-data-dir=${profile}`,
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ...(headless ? ['--headless'] : []),
  ],
  // It leaves its snapshots in `.playwright-mcp` where it runs.
  { cwd: installed('.'), stdio: ['pipe', 'pipe', 'inherit'] },
);
const waiting = new Map();
createInterface({ input: server.stdout }).on('line', (line) => {
  const { id, result, error } = JSON.parse(line);
  if (error) throw new Error(error.message);
  waiting.get(id)?.(result);
});
let count = 0;
/** @param {object} message */
const say = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
/** @param {string} method @param {object} params */
const ask = (method, params) =>
  new Promise((resolve) => {
    count += 1;
    waiting.set(count, resolve);
    say({ id: count, method, params });
  });
/** @param {string} name @param {object} args */
const call = (name, args) => ask('tools/call', { name, arguments: args });

await ask('initialize', {
  protocolVersion: '2025-03-26',
  capabilities: {},
  clientInfo: { name: 'matrix', version: '1' },
});
say({ method: 'notifications/initialized' });
await call('browser_navigate', { url });
await call('browser_wait_for', { text: 'Press' });
await call('browser_click', { element: 'Press', target: '#press' });
