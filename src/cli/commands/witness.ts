import { randomBytes } from 'node:crypto';
import { baseUrl, type Config } from '../../config.ts';
import { makeServer } from '../../http/server.ts';
import { parseVkey } from '../../ledger/vkey.ts';
import { isoTime, MINUTE, SECOND } from '../../lib/clock.ts';
import { makeUlid } from '../../lib/random.ts';
import { makeWitnessBook, type WitnessedLog } from '../../log/witness-files.ts';
import { witnessLane } from '../../log/witness-lane.ts';
import { makeWitness, openWitness } from '../../log/witness-service.ts';
import { listen, parseRanges, readTls } from '../../ops/listen.ts';
import { makeFaultLog, makeLogger } from '../../ops/log.ts';
import type { Store } from '../../tenants/installation-files.ts';
import type { Actions } from '../define.ts';
import { notifyWebhooks } from '../directory.ts';
import { conflict, misused, print, printLine, wantsJson } from '../output.ts';
import { configFor, onStore, withStore } from '../run.ts';
import { untilSignal } from './serve.ts';

const DRAIN_MS = 10 * SECOND;
const LISTEN = '127.0.0.1:8090';

async function openBook(store: Store, config: Config) {
  const book = makeWitnessBook(config.data_dir, store.serverSecret);
  const keys = { book, serverSecret: store.serverSecret, random: randomBytes, clock: Date.now };
  const cosigner = await openWitness(keys, `${new URL(baseUrl(config)).host}/witness`);
  return { ...keys, cosigner };
}

/** Serves `add-checkpoint` until it is stopped. @throws {ConfigError} */
export async function startWitness(
  store: Store,
  config: Config,
  at: Pick<Config, 'host' | 'port'>,
  log: ReturnType<typeof makeLogger>,
) {
  const { logFault, onFault } = makeFaultLog(log);
  const { book, cosigner, ...keys } = await openBook(store, config);
  const answer = makeWitness(
    {
      ...keys,
      book,
      database: store.database,
      onFork: (origin, { kept, refused, proof, proven }) => {
        log.error({ event: 'log.fork', origin, proven });
        const data = { origin, witness: cosigner.vkey, proven, kept, refused, proof };
        void notifyWebhooks(store, 'log.fork', data).catch(logFault('log-fork-untold'));
      },
    },
    cosigner,
  );
  const running = makeServer({
    lanes: new Map([['/add-checkpoint', witnessLane(answer, logFault('witness-failed'))]]),
    express: (_request, response) => void response.writeHead(404).end(),
    makeRequestId: () => `req_${makeUlid(Date.now, randomBytes)}`,
    knowsOrigin: () => false,
    trustedProxies: parseRanges(config.trusted_proxies),
    ja4Header: null,
    onUntrustedForwarded: () => {},
    onFault,
    https: config.tls_cert !== null,
    tls: readTls(config),
  });
  const port = await listen(running, { ...config, ...at }, null);
  const thin = setInterval(() => void book.thin(Date.now()).catch(logFault('witness-failed')), MINUTE);
  const url = baseUrl({ ...config, ...at, base_url: null }, port);
  return {
    url,
    vkey: cosigner.vkey,
    async stop() {
      clearInterval(thin);
      await running.drain(DRAIN_MS);
    },
  };
}

async function serve(options: { readonly listen: string }): Promise<void> {
  const [, host, port] = /^\[?([^\]]+)\]?:(\d{1,5})$/.exec(options.listen) ?? [];
  if (host === undefined) throw misused(`--listen must be HOST:PORT, for instance ${LISTEN}`);
  const log = makeLogger(configFor().log_level);
  await withStore(async (store, config) => {
    const witness = await startWitness(store, config, { host, port: Number(port) }, log);
    const signalled = untilSignal();
    const { url, vkey } = witness;
    log.info({ event: 'listening', url });
    if (wantsJson()) printLine(JSON.stringify({ url, vkey }));
    await signalled;
    await witness.stop();
    log.info({ event: 'stopped' });
  });
}

async function add(vkey: string, origin: string): Promise<void> {
  if (!parseVkey(vkey)) throw misused(`${vkey} is not the verifier key of a log`);
  if (!/^[^\p{Cc}]+$/u.test(origin)) throw misused('<origin> must be the first line of a checkpoint');
  await withStore(async (store, config) => {
    const { book, cosigner } = await openBook(store, config);
    const known = (await book.read()).logs.get(origin);
    if (known && known.vkey !== vkey)
      throw conflict(`${origin} is already listed with another key: ${known.vkey}`);
    await book.append(({ logs }) =>
      logs.has(origin) ? null : { v: 1, event: 'log', at: isoTime(Date.now()), origin, vkey },
    );
    print({ origin, vkey, witness: cosigner.vkey }, () => [cosigner.vkey]);
  });
}

const refusalsOf = (log: WitnessedLog) =>
  [...log.refused.values()].map(({ at, proven, kept, refused, proof }) => {
    return { at, proven, kept, refused, proof };
  });

const status = onStore(() => async (store, config) => {
  const { book, cosigner } = await openBook(store, config);
  const logs = [...(await book.read()).logs.values()].map((log) => ({
    origin: log.origin,
    vkey: log.vkey,
    size: log.last?.size ?? null,
    root: log.last?.root.toString('base64') ?? null,
    cosignedAt: log.last?.at ?? null,
    refused: refusalsOf(log),
  }));
  print({ witness: cosigner.vkey, logs }, () => [
    `witness  ${cosigner.vkey}`,
    ...logs.flatMap(({ origin, size, cosignedAt, refused }) => [
      `${origin}  ${size === null ? 'nothing cosigned yet' : `${size} entries, ${cosignedAt}`}`,
      ...refused.flatMap(({ at, proven, kept, refused: note }) => [
        `  ${at} ${proven ? 'A FORK, PROVEN' : 'refused without proof'}: kept, then refused`,
        ...[...kept.split('\n'), ...note.split('\n')].map((line) => `    ${line}`),
      ]),
    ]),
  ]);
});

export const ACTIONS: Actions = { serve: [serve, { listen: LISTEN }], add, status };
