import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { sealTo } from '../../src/seal/seal.ts';
import { createDevice, type Device } from './signals.ts';
import { seededRandom } from './stats.ts';

/**
 * Seals all bundles before anything is measured. The file has the requests as they go over the socket, each after its
 * length (u32, big-endian).
 */

export interface BundleSpec {
  readonly kid: string;
  readonly publicKey: Buffer;
  readonly origin: string;
  readonly count: number;
  readonly seed: number;
  readonly file: string;
}

/** Share of visits by a device that has visited before. */
const REPEATS = 0.5;
const NONCE_BYTES = 16;

function makePlaintext(device: Device, now: number): Buffer {
  const issuedAt = now - 10_000;
  const consent = { purposes: ['device-identification'], gpc: false, version: 3, issuedAt };
  const nonce = randomBytes(NONCE_BYTES).toString('base64url');
  return Buffer.from(JSON.stringify({ v: 1, nonce, clientTs: now, consent, signals: device.signals }));
}

function createRequest(headers: Readonly<Record<string, string>>, body: string): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST /_fp/i/v1 HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n${lines.join('')}`;
  return Buffer.from(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

export async function writeBundles(spec: BundleSpec): Promise<void> {
  const random = seededRandom(spec.seed);
  const out = createWriteStream(spec.file);
  const devices: Device[] = [];
  for (let i = 0; i < spec.count; i += 1) {
    const earlierDevice = devices[Math.floor(random() * devices.length)];
    const repeat = random() < REPEATS && earlierDevice !== undefined;
    const device = repeat ? earlierDevice : createDevice(random);
    if (!repeat) devices.push(device);
    const bundle = sealTo(spec.kid, spec.publicKey, makePlaintext(device, Date.now()), randomBytes);
    const headers = { ...device.headers, Origin: spec.origin };
    const request = createRequest(headers, JSON.stringify(bundle));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(request.length);
    if (!out.write(Buffer.concat([length, request]))) await once(out, 'drain');
  }
  out.end();
  await finished(out);
}
