import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { decodeBase64 } from '../lib/base64.ts';
import { io } from './io.ts';

/** From a file, or - for standard input; never from an argument, which every user of the machine sees. Null: no base64. */
export async function readSharedKey(file: string): Promise<Buffer | null> {
  try {
    const content = file === '-' ? await text(io().stdin) : readFileSync(file, 'latin1');
    return decodeBase64(content.trim());
  } catch {
    return null;
  }
}
