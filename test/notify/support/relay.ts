import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

/** A real SMTP server that keeps what it receives. */

export interface Received {
  readonly to: readonly string[];
  readonly subject: string;
  /** Headers and body, decoded. */
  readonly text: string;
}

export const readAll = (stream: Readable): Promise<string> =>
  stream.toArray().then((parts: Buffer[]) => Buffer.concat(parts).toString());

const bytesOf = (text: string): Buffer =>
  Buffer.from(
    text.replace(/=([\dA-F]{2})/g, (_code, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );

/** Encoded words of a header (RFC 2047). */
const decodeWords = (header: string): string =>
  header
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([QB])\?(.*?)\?=/gi, (_word, kind: string, text: string) =>
      kind.toUpperCase() === 'B'
        ? Buffer.from(text, 'base64').toString()
        : bytesOf(text.replaceAll('_', ' ')).toString(),
    );

function decode(mail: string): Omit<Received, 'to'> {
  const at = mail.indexOf('\r\n\r\n');
  const head = decodeWords(mail.slice(0, at).replace(/\r\n[ \t]+/g, ' '));
  const body = mail.slice(at + 4);
  const text = /^Content-Transfer-Encoding: base64/im.test(head)
    ? Buffer.from(body, 'base64').toString()
    : /^Content-Transfer-Encoding: quoted-printable/im.test(head)
      ? bytesOf(body.replaceAll('=\r\n', '')).toString()
      : body;
  return { subject: /^Subject: (.*)$/m.exec(head)?.[1]?.trim() ?? '', text: `${head}\r\n\r\n${text}` };
}

export async function startRelay(options: SMTPServerOptions = {}) {
  const mails: Received[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH'],
    logger: false,
    async onData(stream, session, done) {
      const mail = decode(await readAll(stream));
      mails.push({ to: session.envelope.rcptTo.map(({ address }) => address), ...mail });
      done();
    },
    ...options,
  });
  // A client that hangs up causes an error here.
  server.on('error', () => {});
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    mails,
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    stop: () => new Promise<void>((resolve) => void server.close(resolve)),
  };
}
