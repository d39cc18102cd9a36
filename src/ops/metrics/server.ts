import { createServer, type Server } from 'node:http';
import { errorReply } from '../../http/reply.ts';

/** GET /metrics on a listener of its own: nothing of it is reachable where browsers are. */
export function makeMetricsServer(deps: {
  readonly contentType: string;
  readonly text: () => Promise<string>;
  readonly onFault: (error: unknown) => void;
}): Server {
  return createServer(
    { requestTimeout: 5000, headersTimeout: 5000, maxHeaderSize: 8192 },
    (request, response) => {
      const path = (request.url ?? '/').split('?', 1)[0];
      const send = (status: number, headers: Readonly<Record<string, string>>, body: string): void => {
        response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
        response.end(request.method === 'HEAD' ? '' : body);
      };
      const refuse = (reply: ReturnType<typeof errorReply>): void =>
        send(reply.status, reply.headers, reply.body);
      if (path !== '/metrics') refuse(errorReply('not-found'));
      else if (request.method !== 'GET' && request.method !== 'HEAD')
        refuse(errorReply('method-not-allowed', { allow: 'GET, HEAD' }));
      else {
        deps.text().then(
          (text) => send(200, { 'content-type': deps.contentType, 'cache-control': 'no-store' }, text),
          (error: unknown) => {
            deps.onFault(error);
            refuse(errorReply('internal'));
          },
        );
      }
    },
  );
}
