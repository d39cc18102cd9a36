import { request } from 'node:http';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { tempDir } from '../../../support/command.ts';
import { initGpd } from '../../../support/server.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { createManager, type Manager, type ManagerSpec, missingManager, until } from '../support/manager.ts';

/** Runs the program as a unit of Type=notify, with and without sockets of the unit. */

const running: Manager[] = [];
afterEach(() => {
  for (const manager of running.splice(0)) manager.end();
});

async function manage(spec: Partial<ManagerSpec> = {}): Promise<Manager> {
  const { dataDir } = spec.dataDir === undefined ? await initGpd() : { dataDir: spec.dataDir };
  const manager = await createManager({ args: ['--port', '0'], ...spec, dataDir });
  running.push(manager);
  return manager;
}

const texts = (manager: Manager): string[] => manager.words.map(({ text }) => text);
const count = (manager: Manager, text: string): number =>
  texts(manager).filter((word) => word === text).length;
const isReady = (manager: Manager) => (): boolean => texts(manager).includes('READY=1');
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends one request on a new connection. */
function get(port: number, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    outgoing.once('error', reject).end();
  });
}

describeWithTool('gpd serve under a service manager', missingManager(), () => {
  it('says READY=1 when it answers, STOPPING=1 when it is asked to end, and who it is in between', async () => {
    const manager = await manage({ sockets: [{ name: 'http' }], args: [] });
    const [port = 0] = manager.ports;
    manager.start();
    // This connection waits in the socket since before the start.
    const early = get(port, '/readyz');
    await until('it is ready', isReady(manager));
    expect((await early).status).toBe(200);
    expect(texts(manager)).toEqual(['STATUS=starting', `STATUS=listening on port ${port}`, 'READY=1']);
    manager.signal('SIGTERM');
    await until('it ended', () => manager.exits.length === 1);
    expect(manager.exits).toEqual([0]);
    expect(texts(manager).slice(3)).toEqual(['STATUS=draining', 'STOPPING=1']);
  });

  it('never says READY=1 when it does not start', async () => {
    const manager = await manage({ dataDir: join(tempDir('none'), 'data') });
    manager.start();
    await until('it ended', () => manager.exits.length === 1);
    expect(manager.exits).toEqual([78]);
    expect(texts(manager)).not.toContain('READY=1');
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

  it('the signs keep within their time, and are told by a process of its own', async () => {
    const manager = await manage({ watchdogMs: 900 });
    manager.start();
    await until('it gives signs', () => count(manager, 'WATCHDOG=1') >= 8);
    const signs = manager.words.filter(({ text }) => text === 'WATCHDOG=1');
    const gaps = signs.slice(1).map(({ at }, i) => at - (signs[i]?.at ?? 0));
    expect(Math.max(...gaps)).toBeLessThan(0.9);
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
        await get(port, '/_fp/pubkey?kid=acme').then(
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
    expect((await get(metrics, '/metrics')).body).toContain('gpd_');
    expect((await get(http, '/metrics')).status).toBe(404);
    expect((await get(metrics, '/healthz')).status).toBe(404);
    expect((await get(http, '/healthz')).status).toBe(200);
  });

  it.each([
    ['a name that means nothing', { sockets: [{ name: 'smtp' }] }, /FileDescriptorName= is http or metrics/],
    [
      'two for one',
      { sockets: [{ name: 'http' }, { name: 'http' }] },
      /two sockets of the unit are for http/,
    ],
    [
      'no TCP',
      { sockets: [{ name: 'http', kind: 'unix', path: join(tempDir('unix'), 's') }] },
      /not a TCP socket/,
    ],
  ] as const)('refuses %s with 78', async (_what, spec, words) => {
    const manager = await manage({ ...spec, args: [] });
    manager.start();
    await until('it ended', () => manager.exits.length === 1);
    expect({ exits: manager.exits, said: words.test(manager.log()) }).toEqual({ exits: [78], said: true });
  });

  it('passes over sockets that are meant for another process', async () => {
    const manager = await manage({ sockets: [{ name: 'smtp' }], listenPid: 1 });
    manager.start();
    await until('it is ready', isReady(manager));
    expect(texts(manager)).not.toContain(`STATUS=listening on port ${manager.ports[0]}`);
  });
});
