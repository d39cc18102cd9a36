import { fstatSync } from 'node:fs';
import { ConfigError, type ServiceManager } from '../../config.ts';
import { tryOr } from '../../lib/errors.ts';

/** The sockets that systemd opened for the service (sd_listen_fds(3)). */

type Sockets = Record<'http' | 'metrics', number | null>;

/** Listening sockets of systemd/*.socket: they outlive a restart, and connections wait in them meanwhile. */
export type GivenSockets = Readonly<Sockets>;

export const NO_SOCKETS: GivenSockets = { http: null, metrics: null };

/** `unknown` is what sd_listen_fds_with_names(3) calls a socket without FileDescriptorName=. */
const NAMES: Readonly<Record<string, keyof GivenSockets>> = {
  '': 'http',
  unknown: 'http',
  http: 'http',
  'gpd.socket': 'http',
  metrics: 'metrics',
  'gpd-metrics.socket': 'metrics',
};

const isSocket = (fd: number): boolean => tryOr(() => fstatSync(fd).isSocket(), false);

/** @throws {ConfigError} for an unknown socket, whose connections nobody would answer */
export function takeSockets(descriptors: ServiceManager['sockets']): GivenSockets {
  const sockets: Sockets = { ...NO_SOCKETS };
  for (const { fd, name } of descriptors) {
    const use = NAMES[name];
    if (use === undefined)
      throw new ConfigError(`socket ${name} of the unit: FileDescriptorName= is http or metrics`);
    if (sockets[use] !== null) throw new ConfigError(`two sockets of the unit are for ${use}: leave one`);
    if (!isSocket(fd))
      throw new ConfigError(`descriptor ${fd} is not a socket: LISTEN_FDS was not set by systemd`);
    sockets[use] = fd;
  }
  return sockets;
}
