import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Room on disk for what is written now and read once later. The file has no name, and its bytes are encrypted
 * under a key that only this process has: whatever ends the process, nothing of a person is left behind.
 */
export type Spool = Awaited<ReturnType<typeof openSpool>>;

const BUFFER = 64 * 1024;

export async function openSpool(directory: string) {
  const path = join(directory, `gpd-${randomBytes(12).toString('hex')}`);
  const file = await open(path, 'wx+', 0o600);
  try {
    await rm(path);
  } catch (error) {
    await file.close();
    throw error;
  }
  const [key, iv] = [randomBytes(32), randomBytes(16)];
  const cipher = createCipheriv('aes-256-ctr', key, iv);
  let pendingTexts: string[] = [];
  let length = 0;
  let size = 0;
  const writeBytes = async (bytes: Uint8Array): Promise<void> => {
    await file.writeFile(cipher.update(bytes));
    size += bytes.length;
  };
  const flush = async (): Promise<void> => {
    const bytes = Buffer.from(pendingTexts.join(''));
    [pendingTexts, length] = [[], 0];
    await writeBytes(bytes);
  };
  return {
    /** Bytes as they are; not to be mixed with `write`. */
    writeBytes,
    async write(text: string) {
      pendingTexts.push(text);
      length += text.length;
      if (length >= BUFFER) await flush();
    },
    /** Once, after the last write. */
    async *read() {
      await flush();
      const decipher = createDecipheriv('aes-256-ctr', key, iv);
      for (let at = 0; at < size; ) {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(BUFFER), 0, BUFFER, at);
        if (bytesRead === 0) throw new Error('the scratch file lost its end');
        at += bytesRead;
        yield decipher.update(buffer.subarray(0, bytesRead));
      }
    },
    close: () => file.close(),
  };
}
