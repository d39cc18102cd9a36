import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { endpointOf, workerUrlOf } from '../../src/agent/server.ts';

const PAGE = 'https://shop.example/cart';
const SCRIPT_URL = 'https://shop.example/v1/agent.js';
const OTHER = 'https://gpd.example/v1/agent.js?x=1';

beforeEach(() => {
  vi.stubGlobal('location', new URL(PAGE));
});
afterEach(() => {
  vi.unstubAllGlobals();
});

describe('endpointOf', () => {
  it.each([
    [undefined, OTHER, 'https://gpd.example'],
    [undefined, null, 'https://shop.example'],
    [undefined, 'https://shop.example/gpd/v1/agent.js', 'https://shop.example/gpd'],
    [undefined, 'https://shop.example/a/b/v1/agent.classic.js?x=/v1/y', 'https://shop.example/a/b'],
    [undefined, 'https://shop.example/assets/agent.js', 'https://shop.example'],
    ['https://id.example/base/', OTHER, 'https://id.example/base'],
    ['/gpd', OTHER, 'https://shop.example/gpd'],
  ])('%s with the script at %s', (configured, scriptUrl, expected) => {
    expect(endpointOf(configured, scriptUrl)).toBe(expected);
  });
});

describe('workerUrlOf', () => {
  it.each([
    [undefined, SCRIPT_URL, 'https://shop.example/v1/agent-worker.js'],
    [undefined, OTHER, null],
    [undefined, null, null],
    [null, SCRIPT_URL, null],
    ['/static/agent-worker.js', OTHER, 'https://shop.example/static/agent-worker.js'],
    ['https://gpd.example/v1/agent-worker.js', OTHER, null],
  ])('%s with the script at %s', (configured, scriptUrl, expected) => {
    expect(workerUrlOf(configured, scriptUrl)).toBe(expected);
  });
});
