import { createHash } from 'node:crypto';
import type { Reply } from '../../../support/http.ts';

/** RFC 6962 section 2.1 word for word, on its own: it shares nothing with the program that it judges. */

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};
const node = (leftHash: Buffer, rightHash: Buffer): Buffer => sha256(Uint8Array.of(1), leftHash, rightHash);

export const leafOf = (entry: string): Buffer => sha256(Uint8Array.of(0), Buffer.from(entry));

export function treeHead(leaves: readonly Buffer[]): Buffer {
  const [first] = leaves;
  if (first === undefined) return sha256();
  if (leaves.length === 1) return first;
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return node(treeHead(leaves.slice(0, k)), treeHead(leaves.slice(k)));
}

export interface Exported {
  readonly seq: number;
  readonly hash: string;
  readonly entry: string;
}

/** The lines of GET /v1/ledger/export. */
export function readExport({ text }: Reply): Exported[] {
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error('the last line is cut off');
  return lines.map((line) => JSON.parse(line) as Exported);
}

export interface Head {
  readonly origin: string;
  readonly size: number;
  readonly root: string;
}

/** The first three lines of a signed note. */
export function readCheckpoint(text: string): Head {
  const [origin = '', size = '', root = ''] = text.split('\n');
  return { origin, size: Number(size), root };
}

/** Entries behind their lengths as big-endian uint16 (C2SP tlog-tiles). */
export function readBundle(bytes: Buffer): string[] {
  const entries: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt16BE(at);
    entries.push(bytes.subarray(at + 2, at + 2 + length).toString());
    at += 2 + length;
  }
  return entries;
}
