import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { sealTo } from '../../src/seal/seal.ts';
import { type Device, makeDevice } from './signals.ts';
import { seededRandom } from './stats.ts';

/**
 * Seals everything before anything is timed. Two files of the same bundles: `wire` holds the requests as they go over
 * the socket, each behind its length (u32, big-endian); `ndjson` holds the lines that `gpd replay` takes.
 */

export interface BundleSpec {
  readonly kid: string;
  readonly publicKey: Buffer;
  readonly origin: string;
  readonly count: number;
  readonly seed: number;
  readonly wire: string;
  readonly ndjson: string;
}

/** Of all visits this part comes from a device that was there before. */
const REPEATS = 0.5;
const NONCE_BYTES = 16;

function makePlaintext(device: Device, now: number): Buffer {
  const issuedAt = now - 10_000;
  const consent = { purposes: ['device-identification'], gpc: false, version: 3, issuedAt };
  const nonce = randomBytes(NONCE_BYTES).toString('base64url');
  return Buffer.from(JSON.stringify({ v: 1, nonce, clientTs: now, consent, signals: device.signals }));
}

function makeRequest(headers: Readonly<Record<string, string>>, body: string): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST /_fp/i/v1 HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n${lines.join('')}`;
  return Buffer.from(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

async function write(stream: WriteStream, bytes: Buffer | string): Promise<void> {
  if (!stream.write(bytes)) await once(stream, 'drain');
}

export async function writeBundles(spec: BundleSpec): Promise<void> {
  const random = seededRandom(spec.seed);
  const wire = createWriteStream(spec.wire);
  const ndjson = createWriteStream(spec.ndjson);
  const devices: Device[] = [];
  for (let i = 0; i < spec.count; i += 1) {
    const known = devices[Math.floor(random() * devices.length)];
    const repeat = random() < REPEATS && known !== undefined;
    const device = repeat ? known : makeDevice(random);
    if (!repeat) devices.push(device);
    const bundle = sealTo(spec.kid, spec.publicKey, makePlaintext(device, Date.now()), randomBytes);
    const headers = { ...device.headers, Origin: spec.origin };
    const request = makeRequest(headers, JSON.stringify(bundle));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(request.length);
    await write(wire, Buffer.concat([length, request]));
    await write(ndjson, `${JSON.stringify({ bundle, headers })}\n`);
  }
  wire.end();
  ndjson.end();
  await Promise.all([finished(wire), finished(ndjson)]);
}
