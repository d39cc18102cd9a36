import { pino } from 'pino';
import { expect, it, vi } from 'vitest';
import { startApp } from '../../src/app.ts';
import { loadConfig } from '../../src/config.ts';
import { initGpd } from '../support/server.ts';

it('each background loop takes its interval from the options, and its default without one', async () => {
  const { dataDir } = await initGpd();
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir, GPD_PORT: '0' }, flags: {} });
  const setIntervalSpy = vi.spyOn(globalThis, 'setInterval');
  const start = async (intervals: object): Promise<(number | undefined)[]> => {
    setIntervalSpy.mockClear();
    const app = await startApp(config, { log: pino({ level: 'silent' }), onFatal: () => {}, intervals });
    await app.stop();
    return setIntervalSpy.mock.calls.map(([, ms]) => ms);
  };
  const customDelays = await start({ poll: 5001, agents: 5002, webhooks: 5003, housekeeping: 5004 });
  expect(customDelays).toEqual(expect.arrayContaining([5001, 5002, 5003, 5004]));
  const usual = await start({});
  const count = (list: readonly unknown[], ms: number): number => list.filter((each) => each === ms).length;
  expect(count(usual, 1000) - count(customDelays, 1000)).toBe(3);
  expect(count(usual, 60_000) - count(customDelays, 60_000)).toBe(1);
});
