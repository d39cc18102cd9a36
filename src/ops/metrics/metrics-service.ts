import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Registry } from 'prom-client';
import { type Config, ConfigError, databaseLocation } from '../../config.ts';
import type { Database } from '../../db/engine.ts';
import { BATCHES, type BatchBegun } from '../../db/group-commit.ts';
import { STATE_INVALID } from '../../db/meta-store.ts';
import { errorReply, methodNotAllowed, type Reply } from '../../http/reply.ts';
import { send } from '../../http/server.ts';
import type { IngestAnswer } from '../../ingest/ingest.ts';
import type { Clock } from '../../lib/clock.ts';
import { ALL_ROUTES } from '../../schema/routes.ts';
import { VERSION } from '../../version.ts';
import { createMeters, registerNode, registerReadiness, registerStock } from './meters-service.ts';
import { createRouteLabel } from './route-label.ts';
import { readStock } from './stock-store.ts';

/** The listener of GPD_METRICS_LISTEN. This file is loaded only if that is set, to save memory otherwise. */

/** @throws {ConfigError} */
export function parseListen(text: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  if (host !== undefined && port <= 65535) return { host, port };
  throw new ConfigError('GPD_METRICS_LISTEN: write HOST:PORT, for instance 127.0.0.1:9100');
}

/** HOST:PORT, or the descriptor of a listening socket. */
type ListenAddress = string | number;

function listenOn(server: Server, address: ListenAddress): Promise<void> {
  const options = typeof address === 'number' ? { fd: address } : parseListen(address);
  const name = typeof address === 'number' ? 'the socket of the unit' : address;
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new ConfigError(`GPD_METRICS_LISTEN: cannot listen on ${name} (${error.code ?? error.name})`));
    });
    server.listen(options, resolve);
  });
}

function refusedAs(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[a-z-]+$/.test(code) ? code : 'fault';
}

/** @throws {ConfigError} when it cannot listen there */
export async function startMetrics(
  { config, database, clock }: { config: Config; database: Database; clock: Clock },
  listen: ListenAddress,
  onFault: (error: unknown) => void,
) {
  const meters = createMeters();
  const read = () => readStock(database, databaseLocation(config), clock());
  registerStock(meters.registry, { read, onFault });
  registerNode(meters.registry, config.data_dir, VERSION);
  const label = createRouteLabel(ALL_ROUTES.map(({ path }) => path));
  const onBatch = (batch: unknown): void => meters.batch(batch as BatchBegun);
  const server = createMetricsServer(meters.registry, onFault);
  await listenOn(server, listen);
  subscribe(BATCHES, onBatch);
  subscribe(STATE_INVALID, meters.invalidState);
  return {
    onAnswered: (path: string, status: number, seconds: number) =>
      meters.request(label(path), status, seconds),
    // Not async: an async function would keep its arguments, and so the bundle, until the answer.
    /** Wraps the ingest so that its answers are counted. */
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
    countJob: meters.job,
    showReadiness: (state: Parameters<typeof registerReadiness>[1]) =>
      registerReadiness(meters.registry, state),
    countWriteFault: meters.writeFault,
    async stop() {
      unsubscribe(BATCHES, onBatch);
      unsubscribe(STATE_INVALID, meters.invalidState);
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

const METHODS = ['GET', 'HEAD'];

/** Serves GET /metrics on a separate listener, which browsers cannot reach. */
function createMetricsServer(registry: Registry, onFault: (error: unknown) => void): Server {
  const headers = { 'content-type': registry.contentType, 'cache-control': 'no-store' };
  const answer = async ({ url = '/', method = '' }: IncomingMessage): Promise<Reply> => {
    if (url.split('?', 1)[0] !== '/metrics') return errorReply('not-found');
    if (!METHODS.includes(method)) {
      const { code, headers: allow } = methodNotAllowed(METHODS);
      return errorReply(code, allow);
    }
    return { status: 200, headers, body: await registry.metrics() };
  };
  const replyWithFault = (error: unknown): Reply => {
    onFault(error);
    return errorReply('internal');
  };
  return createServer(
    { requestTimeout: 5000, headersTimeout: 5000, maxHeaderSize: 8192 },
    (request, response) =>
      void answer(request)
        .catch(replyWithFault)
        .then((reply) => send(response, reply)),
  );
}
