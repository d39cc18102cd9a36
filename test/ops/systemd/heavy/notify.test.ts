import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { PROGRAM, tempDir } from '../../../support/command.ts';
import { ask } from '../../../support/http.ts';
import { initGpd } from '../../../support/server.ts';
import { describeWithTool } from '../../../support/tools.ts';

/** Runs the program as a unit of Type=notify, with and without sockets of the unit. */

/** A small service manager in Python, because Node can neither receive datagrams on AF_UNIX nor keep a listening socket without accepting. */
const SCRIPT = fileURLToPath(new URL('./manager.py', import.meta.url));
const hasProgram = (name: string): boolean => spawnSync(name, ['--version']).status === 0;
const missing =
  hasProgram('python3') && hasProgram('systemd-notify')
    ? null
    : 'python3 or systemd-notify is not installed (packages python3 and systemd)';

interface ManagerSpec {
  readonly dataDir?: string;
  readonly sockets?: readonly { readonly name: string; readonly kind?: string; readonly path?: string }[];
  readonly watchdogMs?: number;
  readonly args?: readonly string[];
  /** Another process id for LISTEN_PID than that of the program. */
  readonly listenPid?: number;
}

type Message =
  | { readonly event: 'sockets'; readonly ports: readonly number[] }
  | { readonly event: 'exit'; readonly code: number }
  | { readonly event: 'notify'; readonly text: string };

async function until(description: string, isDone: () => boolean): Promise<void> {
  await expect.poll(isDone, { interval: 10, message: description }).toBe(true);
}

const managers: { readonly end: () => void }[] = [];
afterEach(() => {
  for (const manager of managers.splice(0)) manager.end();
});

/** Creates a manager whose sockets listen and whose program is not started yet. */
async function manage(spec: ManagerSpec = {}) {
  const folder = tempDir('manager');
  const { dataDir = (await initGpd()).dataDir, sockets = [], args = ['--port', '0'], listenPid } = spec;
  const log = join(folder, 'log');
  const environment = {
    command: [process.execPath, PROGRAM, 'serve', ...args],
    env: { PATH: process.env['PATH'], GPD_DATA_DIR: dataDir },
    notify: join(folder, 'notify'),
    log,
    sockets,
    watchdogUsec: (spec.watchdogMs ?? 0) * 1000,
    listenPid,
  };
  const child = spawn('python3', [SCRIPT, JSON.stringify(environment)], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const words: string[] = [];
  const exits: number[] = [];
  const ports: number[] = [];
  let isListening = false;
  let rest = '';
  child.stdin.on('error', () => {});
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = JSON.parse(line) as Message;
      if (message.event === 'exit') exits.push(message.code);
      else if (message.event === 'notify') words.push(message.text);
      else isListening = ports.push(...message.ports) >= 0;
    }
  });
  const manager = {
    ports,
    /** Everything that the program told the manager. */
    words,
    exits,
    start: () => void child.stdin.write('start\n'),
    signal: (name: string) => void child.stdin.write(`signal ${name}\n`),
    /** The output of the program. */
    log: () => (existsSync(log) ? readFileSync(log, 'utf8') : ''),
    end: () => void child.stdin.end(),
  };
  managers.push(manager);
  await until('the sockets listen', () => isListening);
  return manager;
}

type Manager = Awaited<ReturnType<typeof manage>>;
const count = ({ words }: Manager, text: string): number => words.filter((word) => word === text).length;
const isReady = (manager: Manager) => (): boolean => manager.words.includes('READY=1');
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const urlOf = (port: number): string => `http://127.0.0.1:${port}`;

describeWithTool('gpd serve under a service manager', missing, () => {
  it('says READY=1 when it answers, STOPPING=1 when it is asked to end, and who it is in between', async () => {
    const manager = await manage({ sockets: [{ name: 'http' }], args: [] });
    const [port = 0] = manager.ports;
    manager.start();
    // This connection waits in the socket since before the start.
    const early = ask(urlOf(port), '/readyz');
    await until('it is ready', isReady(manager));
    expect((await early).status).toBe(200);
    expect(manager.words).toEqual(['STATUS=starting', `STATUS=listening on port ${port}`, 'READY=1']);
    manager.signal('SIGTERM');
    await until('it ended', () => manager.exits.length === 1);
    expect(manager.exits).toEqual([0]);
    expect(manager.words.slice(3)).toEqual(['STATUS=draining', 'STOPPING=1']);
  });

  it('never says READY=1 when it does not start', async () => {
    const manager = await manage({ dataDir: join(tempDir('none'), 'data') });
    manager.start();
    await until('it ended', () => manager.exits.length === 1);
    expect(manager.exits).toEqual([78]);
    expect(manager.words).not.toContain('READY=1');
    expect(manager.log()).toMatch(/run `gpd init/);
  });

  it('a stopped process gives no sign of life, and one that goes on does', async () => {
    const manager = await manage({ watchdogMs: 600 });
    manager.start();
    await until('it gives signs', () => count(manager, 'WATCHDOG=1') >= 3);
    manager.signal('SIGSTOP');
    await pause(300);
    const before = count(manager, 'WATCHDOG=1');
    await pause(1500);
    expect(count(manager, 'WATCHDOG=1')).toBe(before);
    manager.signal('SIGCONT');
    await until('it gives signs again', () => count(manager, 'WATCHDOG=1') >= before + 2);
  });

  it('no connection is lost over a restart', async () => {
    const manager = await manage({ sockets: [{ name: 'http' }], args: [] });
    const [port = 0] = manager.ports;
    manager.start();
    await until('it is ready', isReady(manager));
    const answers: number[] = [];
    const failures: string[] = [];
    let on = true;
    const load = Array.from({ length: 8 }, async () => {
      while (on) {
        await ask(urlOf(port), '/_fp/pubkey?kid=acme').then(
          ({ status }) => answers.push(status),
          (error: NodeJS.ErrnoException) => failures.push(error.code ?? error.name),
        );
      }
    });
    for (let restart = 1; restart <= 3; restart += 1) {
      const answeredBefore = answers.length;
      await until('it answers', () => answers.length > answeredBefore + 20);
      manager.signal('SIGTERM');
      await until('it ended', () => manager.exits.length === restart);
      // The server is stopped: new connections wait in the socket.
      await pause(100);
      manager.start();
      await until('it is ready again', () => count(manager, 'READY=1') === restart + 1);
    }
    on = false;
    await Promise.all(load);
    expect({ lost: failures, codes: [...new Set(answers)] }).toEqual({ lost: [], codes: [200] });
    expect(manager.exits).toEqual([0, 0, 0]);
    process.stdout.write(`restarts: 3, requests: ${answers.length}, lost: ${failures.length}\n`);
  });

  it('takes a second socket for the metrics, which nothing else answers on', async () => {
    const manager = await manage({ sockets: [{ name: 'metrics' }, { name: 'http' }], args: [] });
    const [metrics = 0, http = 0] = manager.ports;
    manager.start();
    await until('it is ready', isReady(manager));
    expect((await ask(urlOf(metrics), '/metrics')).text).toContain('gpd_');
    for (const [port, path, status] of [
      [http, '/metrics', 404],
      [metrics, '/healthz', 404],
      [http, '/healthz', 200],
    ] as const)
      expect((await ask(urlOf(port), path)).status).toBe(status);
  });

  it.each([
    ['a name that means nothing', [{ name: 'smtp' }], 'FileDescriptorName= is http or metrics'],
    ['two for one', [{ name: 'http' }, { name: 'http' }], 'two sockets of the unit are for http'],
    ['no TCP', [{ name: 'http', kind: 'unix', path: join(tempDir('unix'), 's') }], 'not a TCP socket'],
  ])('refuses %s with 78', async (_what, sockets, words) => {
    const manager = await manage({ sockets, args: [] });
    manager.start();
    await until('it ended', () => manager.exits.length === 1);
    expect(manager.exits).toEqual([78]);
    expect(manager.log()).toContain(words);
  });

  it('passes over sockets that are meant for another process', async () => {
    const manager = await manage({ sockets: [{ name: 'smtp' }], listenPid: 1 });
    manager.start();
    await until('it is ready', isReady(manager));
    expect(manager.words).not.toContain(`STATUS=listening on port ${manager.ports[0]}`);
  });
});
