import { equalBytes, hmacSha256Text, sha256 } from '../lib/hash.ts';

/** JSON lines, each with a MAC over itself and over all lines before it. */

const MAC = /,"mac":"([\w-]{43})"\}$/;

/** Stands for all lines before one. */
export const NO_LINES: Buffer = Buffer.alloc(32);

export function afterLine(before: Uint8Array, line: Uint8Array): Buffer {
  return sha256(Buffer.concat([before, line]));
}

function macOf(key: Uint8Array, name: string, before: Uint8Array, body: string): string {
  return hmacSha256Text(key, Buffer.concat([Buffer.from(`${name}\n`), before, Buffer.from(body)]));
}

/** @param name keeps the lines of one file out of another that has the same key */
export function chainLine(key: Uint8Array, name: string, before: Uint8Array, body: string): string {
  return `${body.slice(0, -1)},"mac":"${macOf(key, name, before, body)}"}`;
}

/** The JSON without its MAC; `no-mac`: no MAC; `changed`: the MAC belongs to another line or position. */
export function openLine(key: Uint8Array, name: string, before: Uint8Array, line: string) {
  const [end, mac] = MAC.exec(line) ?? [];
  if (end === undefined || mac === undefined) return 'no-mac';
  const body = `${line.slice(0, -end.length)}}`;
  return equalBytes(Buffer.from(mac), Buffer.from(macOf(key, name, before, body))) ? { body } : 'changed';
}
