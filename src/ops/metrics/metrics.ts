import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Registry } from 'prom-client';
import { type Config, ConfigError, databaseLocation } from '../../config.ts';
import type { Database } from '../../db/engine.ts';
import { BATCHES, type BatchBegun } from '../../db/group-commit.ts';
import { STATE_INVALID } from '../../db/meta-store.ts';
import { errorReply } from '../../http/reply.ts';
import type { HotReply } from '../../http/request.ts';
import type { IngestAnswer } from '../../ingest/respond.ts';
import type { Clock } from '../../lib/clock.ts';
import { ALL_ROUTES } from '../../schema/routes.ts';
import { VERSION } from '../../version.ts';
import { createMeters, registerNode, registerStock } from './meters.ts';
import { createRouteLabel } from './route-label.ts';
import { readStock } from './stock-store.ts';

/** GPD_METRICS_LISTEN: loaded only where it is set, so that nobody else pays for it. */

/** @throws {ConfigError} */
export function parseListen(text: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  if (host !== undefined && port <= 65535) return { host, port };
  throw new ConfigError('GPD_METRICS_LISTEN: write HOST:PORT, for instance 127.0.0.1:9100');
}

/** HOST:PORT, or the descriptor of a socket that listens already. */
type Where = string | number;

function listenOn(server: Server, where: Where): Promise<void> {
  const place = typeof where === 'number' ? { fd: where } : parseListen(where);
  const name = typeof where === 'number' ? 'the socket of the unit' : where;
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new ConfigError(`GPD_METRICS_LISTEN: cannot listen on ${name} (${error.code ?? error.name})`));
    });
    server.listen(place, resolve);
  });
}

function refusedAs(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[a-z-]+$/.test(code) ? code : 'fault';
}

/** @throws {ConfigError} when it cannot listen there */
export async function startMetrics(
  { config, database, clock }: { config: Config; database: Database; clock: Clock },
  listen: Where,
  onFault: (error: unknown) => void,
) {
  const meters = createMeters();
  const read = () => readStock(database, databaseLocation(config), clock());
  registerStock(meters.registry, { read, onFault });
  registerNode(meters.registry, config.data_dir, VERSION);
  const label = createRouteLabel(ALL_ROUTES.map(({ path }) => path));
  const onBatch = (begun: unknown): void => meters.batch(begun as BatchBegun);
  const server = createMetricsServer(meters.registry, onFault);
  await listenOn(server, listen);
  subscribe(BATCHES, onBatch);
  subscribe(STATE_INVALID, meters.invalidState);
  return {
    onAnswered: (path: string, status: number, seconds: number) =>
      meters.request(label(path), status, seconds),
    // No function that waits holds the arguments: one of them is the bundle.
    /** The same function, with its answers counted. */
    countIngest:
      <Args extends unknown[]>(ingest: (...args: Args) => Promise<IngestAnswer>) =>
      (...args: Args) =>
        ingest(...args).then((answer) => {
          const { reason, class: visitorClass } = answer.response;
          meters.ingest(reason, reason === 'ok' ? visitorClass : null);
          return answer;
        }),
    countChecks:
      <Args extends unknown[], Answer extends { readonly reason: string }>(
        check: (...args: Args) => Promise<Answer>,
      ) =>
      async (...args: Args) => {
        try {
          const answer = await check(...args);
          meters.check(answer.reason);
          return answer;
        } catch (error) {
          meters.check(refusedAs(error));
          throw error;
        }
      },
    countCosigning: meters.cosigning,
    countAttestation: meters.attestation,
    async stop() {
      unsubscribe(BATCHES, onBatch);
      unsubscribe(STATE_INVALID, meters.invalidState);
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

/** GET /metrics on a separate listener: browsers cannot reach it. */
function createMetricsServer(registry: Registry, onFault: (error: unknown) => void): Server {
  const headers = { 'content-type': registry.contentType, 'cache-control': 'no-store' };
  const answer = async ({ url = '/', method = '' }: IncomingMessage): Promise<HotReply> => {
    if (url.split('?', 1)[0] !== '/metrics') return errorReply('not-found');
    if (!['GET', 'HEAD'].includes(method)) return errorReply('method-not-allowed', { allow: 'GET, HEAD' });
    return { status: 200, headers, body: await registry.metrics() };
  };
  const failed = (error: unknown): HotReply => {
    onFault(error);
    return errorReply('internal');
  };
  return createServer(
    { requestTimeout: 5000, headersTimeout: 5000, maxHeaderSize: 8192 },
    (request, response) =>
      void answer(request)
        .catch(failed)
        .then(({ status, headers: given, body }) => {
          response.writeHead(status, { ...given, 'content-length': Buffer.byteLength(body) });
          response.end(request.method === 'HEAD' ? '' : body);
        }),
  );
}
