import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EgressRefused } from '../../src/egress/guard.ts';
import { fetchJsonDocument } from '../../src/egress/send.ts';
import { type Answer, type DirectoryServer, MEDIA_TYPE, startDirectory } from './support/server.ts';

/** A directory server that says too little: the time of a fetch is bounded as a whole. */

let server: DirectoryServer;
beforeAll(async () => {
  server = await startDirectory(300);
});
afterAll(() => server.close());

const TYPE = { 'content-type': MEDIA_TYPE };
const fetchIt = (answer: Answer): Promise<unknown> => {
  server.answer = answer;
  return fetchJsonDocument(server.url, server.options);
};

describe('a server that goes silent or away', () => {
  const silences: readonly (readonly [string, Answer])[] = [
    ['never answers', () => {}],
    [
      'answers its headers and then hangs',
      (response) => {
        response.writeHead(200, TYPE);
        response.flushHeaders();
      },
    ],
    [
      'sends half a body and then hangs',
      (response) => {
        response.writeHead(200, TYPE);
        response.write('{"keys":');
      },
    ],
    [
      'sends a byte now and then',
      (response) => {
        response.writeHead(200, TYPE);
        const timer = setInterval(() => response.write(' '), 50);
        response.once('close', () => clearInterval(timer));
      },
    ],
  ];
  it.each(silences)('%s: given up', async (_name, answer) => {
    await expect(fetchIt(answer)).rejects.toThrow('it did not answer in time');
  });

  const departures: readonly (readonly [string, Answer])[] = [
    ['before it answers', (response) => void response.socket?.destroy()],
    [
      'in the middle of a declared body',
      (response) => {
        response.writeHead(200, { ...TYPE, 'content-length': '100' });
        response.write('{"keys":[]}');
        setTimeout(() => response.socket?.destroy(), 20);
      },
    ],
    [
      'in the middle of a chunked body that looks whole',
      (response) => {
        response.writeHead(200, TYPE);
        response.write('{"keys":[]}');
        setTimeout(() => response.socket?.destroy(), 20);
      },
    ],
  ];
  it.each(departures)('closes %s', async (_name, answer) => {
    await expect(fetchIt(answer)).rejects.toThrow(EgressRefused);
  });

  it('is not there at all', async () => {
    const placeholder = createServer();
    await new Promise<void>((resolve) => placeholder.listen(0, '127.0.0.1', resolve));
    const { port } = placeholder.address() as AddressInfo;
    await new Promise((resolve) => placeholder.close(resolve));
    await expect(fetchJsonDocument(`https://127.0.0.1:${port}/`, server.options)).rejects.toThrow(
      'it cannot be reached (ECONNREFUSED)',
    );
  });
});
