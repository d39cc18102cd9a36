/** Requests whose head or body two readers could read in two ways. */

export const HOST = 'Host: gpd.test\r\n';
export const SMUGGLED = `GET /healthz HTTP/1.1\r\n${HOST}\r\n`;
export const post = (path: string, ...lines: readonly string[]): string =>
  `${[`POST ${path} HTTP/1.1`, 'Host: gpd.test', 'Content-Type: application/json', ...lines].join('\r\n')}\r\n\r\n`;

export function badBodies(path: string): readonly (readonly [string, string])[] {
  const chunked = post(path, 'Transfer-Encoding: chunked');
  return [
    ['a chunk size that is none', `${chunked}zz\r\n`],
    ['a chunk size past 64 bits', `${chunked}fffffffffffffffff\r\n`],
    ['a chunk that is longer than it says', `${chunked}1\r\n{}\r\n0\r\n\r\n`],
    ['a chunk that ends in LF', `${chunked}1\n{\n0\n\n`],
  ];
}

export function badHeads(path: string): readonly (readonly [string, string])[] {
  return [
    [
      'Content-Length and Transfer-Encoding',
      `${post(path, 'Content-Length: 4', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    ],
    [
      'Transfer-Encoding and Content-Length',
      `${post(path, 'Transfer-Encoding: chunked', 'Content-Length: 5')}0\r\n\r\n`,
    ],
    ['two equal Content-Lengths', `${post(path, 'Content-Length: 2', 'Content-Length: 2')}{}`],
    ['two Content-Lengths', `${post(path, 'Content-Length: 2', 'Content-Length: 60')}{}`],
    ['a list of Content-Lengths', `${post(path, 'Content-Length: 2, 2')}{}`],
    ['a signed Content-Length', `${post(path, 'Content-Length: +2')}{}`],
    ['a negative Content-Length', post(path, 'Content-Length: -1')],
    ['a hexadecimal Content-Length', `${post(path, 'Content-Length: 0x2')}{}`],
    ['a Content-Length past 64 bits', `${post(path, 'Content-Length: 18446744073709551618')}{}`],
    ['an empty Content-Length', `${post(path, 'Content-Length:')}{}`],
    ['a blank before the colon', `${post(path, 'Content-Length : 2')}{}`],
    ['a folded header', `${post(path, 'Content-Length: 2', ' 9')}{}`],
    ['a folded Transfer-Encoding', `${post(path, 'Transfer-Encoding:', ' chunked')}0\r\n\r\n`],
    ['bare LF between headers', `POST ${path} HTTP/1.1\r\n${HOST}X: y\nContent-Length: 2\r\n\r\n{}`],
    ['bare LF everywhere', `POST ${path} HTTP/1.1\nHost: gpd.test\nContent-Length: 2\n\n{}`],
    ['bare CR in a header', `${post(path, 'X: a\rContent-Length: 2')}{}`],
    ['NUL in a header', post(path, 'X: a\0b', 'Content-Length: 0')],
    ['NUL in the name of a header', post(path, 'X\0: b', 'Content-Length: 0')],
    ['a line without a colon', post(path, 'nonsense', 'Content-Length: 0')],
    ['a header of 20,000 bytes', post(path, `X: ${'a'.repeat(20_000)}`)],
    ['2,000 headers', post(path, ...Array.from({ length: 2000 }, (_, i) => `X-${i}: ${'v'.repeat(8)}`))],
    ['an unknown coding last', `${post(path, 'Transfer-Encoding: chunked, identity')}0\r\n\r\n`],
    ['a coding with a control character', `${post(path, 'Transfer-Encoding: \u000bchunked')}0\r\n\r\n`],
    ['two Hosts', post(path, 'Host: other.test', 'Content-Length: 0')],
    ['no Host', `POST ${path} HTTP/1.1\r\nContent-Length: 0\r\n\r\n`],
  ];
}
