import type { IncomingHttpHeaders } from 'node:http';
import type { Address } from '../lib/ip.ts';

/** What a hot-lane handler sees: neither Express nor `node:http`. */
export interface HotRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** The client behind the trust boundary, for limits and for network counts; never stored raw. */
  readonly limitKey: string;
  readonly networkKey: string;
  readonly client: Address | null;
  /** JA4 from a trusted proxy. */
  readonly ja4: string | null;
  readonly https: boolean;
  readonly requestId: string;
  /** Reads at most `limit` bytes. Null: there are more. Rejects when the sender disconnects. */
  readBody(limit: number): Promise<Buffer | null>;
}

export interface HotReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type HotHandler = (request: HotRequest) => Promise<HotReply>;

/** A limiter answers 0, or the whole seconds to wait. */
export type Limiter = (key: string) => Promise<number>;
