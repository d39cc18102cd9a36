import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inTurn } from '../../src/db/turns.ts';
import { type Gpd, startGpd } from '../support/server.ts';

const CLIENTS = 50;
const CONNECTED_MS = 30_000;

let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
});
afterAll(() => gpd.stop());

/** Connects from a second thread, so that the connections wait while this one is busy. */
const CROWD = `
  const { connect } = require('node:net');
  const { workerData: { port, clients, cell } } = require('node:worker_threads');
  Atomics.wait(cell, 0, 0);
  for (let i = 0; i < clients; i += 1) {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write('GET /healthz HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n');
      Atomics.add(cell, 1, 1);
      Atomics.notify(cell, 1);
    });
  }`;

it('accepts a crowd while many clients are answered', async () => {
  let [requests, acts] = [0, 0];
  const order: number[] = [];
  const answerMany = (): void => {
    requests += 1;
    if (requests > 1) return;
    for (let i = 0; i < CLIENTS; i += 1)
      inTurn(() => {
        acts = order.push(i);
      });
  };
  const cell = new Int32Array(new SharedArrayBuffer(8));
  const workerData = { port: gpd.port, clients: CLIENTS, cell };
  const crowd = new Worker(CROWD, { eval: true, workerData });
  subscribe('http.server.request.start', answerMany);
  try {
    Atomics.store(cell, 0, 1);
    Atomics.notify(cell, 0);
    for (let connected = 0; connected < CLIENTS; connected = Atomics.load(cell, 1))
      expect(Atomics.wait(cell, 1, connected, CONNECTED_MS)).not.toBe('timed-out');
    while (acts < CLIENTS) await turn();
    expect(requests).toBeGreaterThan(CLIENTS / 2);
    expect(order).toEqual(Array.from({ length: CLIENTS }, (_, i) => i));
    // Nobody arrives any more.
    while (requests < CLIENTS) await turn();
    for (let i = 0; i < 10; i += 1) await turn();
    inTurn(() => {
      acts = 0;
    });
    expect(acts).toBe(0);
  } finally {
    unsubscribe('http.server.request.start', answerMany);
    await crowd.terminate();
  }
});
