import { describe, expect, it } from 'vitest';
import { EgressRefused } from '../../src/egress/guard.ts';
import { fetchJsonDocument } from '../../src/egress/send.ts';
import { serve } from '../support/serve.ts';
import { started } from '../support/started.ts';
import { type Answer, jwks, MEDIA_TYPE, startDirectory } from './support/server.ts';

/** A directory server that misbehaves in every way; the time of a fetch is bounded as a whole. */

// An answer is waited for on a busy machine too; a silence is short.
const server = started(() => startDirectory(20_000));

const fetchIt = (answer: Answer, url = server.url): Promise<unknown> => {
  server.answer = answer;
  return fetchJsonDocument(url, server.options);
};

const reply =
  (status: number, headers: Record<string, string>, body: string | Buffer = '{"keys":[]}'): Answer =>
  (response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
const TYPE = { 'content-type': MEDIA_TYPE };

describe('a good answer', () => {
  it.each([
    ['as it should be', reply(200, TYPE)],
    ['with parameters on the media type', reply(200, { 'content-type': `${MEDIA_TYPE}; charset=utf-8` })],
    ['with the media type in capitals', reply(200, { 'content-type': MEDIA_TYPE.toUpperCase() })],
    [
      'in pieces',
      ((response) => {
        response.writeHead(200, TYPE);
        response.write('{"ke');
        setTimeout(() => response.end('ys":[]}'), 20);
      }) satisfies Answer,
    ],
    ['of exactly the size that is allowed', reply(200, TYPE, `{"keys":[]${' '.repeat(65_536 - 11)}}`)],
  ])('%s', async (_name, answer) => {
    expect(await fetchIt(answer)).toEqual({ keys: [] });
  });

  it('is asked for by name too, and says what is wanted and nothing of us', async () => {
    let headers = {};
    const answer: Answer = (response, request) => {
      headers = request.headers;
      jwks([])(response, request);
    };
    expect(await fetchIt(answer, `https://localhost:${server.port}/x`)).toEqual({ keys: [] });
    expect(headers).toEqual({
      accept: MEDIA_TYPE,
      'user-agent': 'gpd',
      host: `localhost:${server.port}`,
      connection: 'close',
    });
  });
});

describe('a status that is not 200', () => {
  it.each([201, 204, 206, 301, 302, 303, 304, 307, 308, 404, 500])('%d', async (status) => {
    const countBefore = server.asked.length;
    const location = `https://127.0.0.1:${server.port}/elsewhere`;
    await expect(fetchIt(reply(status, { ...TYPE, location }))).rejects.toThrow(
      `it answered ${status} and not 200`,
    );
    expect(server.asked.slice(countBefore)).toEqual([new URL(server.url).pathname]);
  });
});

describe('a media type that is not the right one', () => {
  it.each([
    ...['application/json', 'text/plain; charset=utf-8', `${MEDIA_TYPE}x`, `x${MEDIA_TYPE}`, '', null],
  ])('%s', async (type) => {
    const headers = reply(200, type === null ? {} : { 'content-type': type });
    await expect(fetchIt(headers)).rejects.toThrow('its media type is not');
  });
});

describe('a body that is too much, too little or not JSON', () => {
  const huge = (response: Parameters<Answer>[0], progress: { bytes: number }): void => {
    const chunk = Buffer.alloc(65_536, 0x20);
    const pour = (): void => {
      while (!response.destroyed && progress.bytes < 64 * 2 ** 20 && response.write(chunk))
        progress.bytes += chunk.length;
      if (!response.destroyed && progress.bytes < 64 * 2 ** 20) response.once('drain', pour);
    };
    pour();
  };

  it.each([
    ['declared', { ...TYPE, 'content-length': String(64 * 2 ** 20) }],
    ['chunked', TYPE],
  ])('is cut off when it is huge and %s', async (_name, headers) => {
    const progress = { bytes: 0 };
    const answer: Answer = (response) => {
      response.writeHead(200, headers);
      huge(response, progress);
    };
    await expect(fetchIt(answer)).rejects.toThrow('the document is too large');
    expect(progress.bytes).toBeLessThan(16 * 2 ** 20);
  });

  it('is refused one byte past the limit', async () => {
    await expect(fetchIt(reply(200, TYPE, `{"keys":[]${' '.repeat(65_536 - 10)}}`))).rejects.toThrow(
      'too large',
    );
  });

  it('is refused when it is compressed: nothing is unpacked', async () => {
    const packed = { ...TYPE, 'content-encoding': 'gzip' };
    await expect(fetchIt(reply(200, packed, Buffer.from('1f8b0800', 'hex')))).rejects.toThrow(EgressRefused);
  });

  it.each([
    ['nothing', ''],
    ['half of it', '{"keys":['],
    ['more behind it', '{"keys":[]} x'],
    ['HTML', '<!doctype html>'],
    [
      'not UTF-8',
      Buffer.concat([Buffer.from('{"keys":[],"name":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
    ],
  ])('is refused when it is %s', async (_name, body) => {
    await expect(fetchIt(reply(200, TYPE, body))).rejects.toThrow(EgressRefused);
  });

  it('and the reason quotes nothing of it', async () => {
    const secret = 'root:x:0:0';
    const error = await fetchIt(reply(200, TYPE, secret)).catch((caught: unknown) => caught);
    expect(String(error)).not.toContain(secret.slice(0, 4));
  });
});

describe('who is asked', () => {
  let lookups = 0;
  const plain = started(() =>
    serve((_request, response) => {
      lookups += 1;
      response.writeHead(200, TYPE).end('{"keys":[]}');
    }),
  );

  it('only https', async () => {
    const { port } = plain;
    for (const url of [
      `http://127.0.0.1:${port}/`,
      'ftp://agent.example/',
      'file:///etc/passwd',
      'data:,x',
    ]) {
      await expect(fetchJsonDocument(url, server.options)).rejects.toThrow('only https is fetched');
    }
    await expect(fetchJsonDocument(`https://127.0.0.1:${port}/`, server.options)).rejects.toThrow(
      EgressRefused,
    );
    expect(lookups).toBe(0);
  });

  it('only with a certificate of a trusted CA, for this name', async () => {
    server.answer = jwks([]);
    const { ca: _ca, ...strangers } = server.options;
    await expect(fetchJsonDocument(server.url, strangers)).rejects.toThrow(/cannot be reached/);
    const unnamed = `https://[::ffff:127.0.0.1]:${server.port}/`;
    await expect(fetchJsonDocument(unnamed, server.options)).rejects.toThrow(/cannot be reached/);
  });

  it.each(['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '0177.0.0.1', '127.1', '[::ffff:127.0.0.1]'])(
    'this machine is not, as %s',
    async (host) => {
      server.answer = jwks([]);
      const before = server.asked.length;
      const { allow: _allow, ...guarded } = server.options;
      await expect(fetchJsonDocument(`https://${host}:${server.port}/`, guarded)).rejects.toThrow(
        /not public/,
      );
      expect(server.asked).toHaveLength(before);
    },
  );
});

describe('a server that goes silent or away', () => {
  const silences: readonly (readonly [string, Answer])[] = [
    ['never answers', () => {}],
    ['answers its headers and then hangs', (response) => response.writeHead(200, TYPE).flushHeaders()],
    ['sends half a body and then hangs', (response) => void response.writeHead(200, TYPE).write('{"keys":')],
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
    server.answer = answer;
    const fetched = fetchJsonDocument(server.url, { ...server.options, timeoutMs: 300 });
    await expect(fetched).rejects.toThrow('it did not answer in time');
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
    const { port, stop } = await serve(() => {});
    await stop();
    await expect(fetchJsonDocument(`https://127.0.0.1:${port}/`, server.options)).rejects.toThrow(
      'it cannot be reached (ECONNREFUSED)',
    );
  });
});
