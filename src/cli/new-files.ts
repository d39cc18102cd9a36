import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { CommandFailed, conflict, misused } from './io-service.ts';

/**
 * Writes a new file for commands: complete or not at all, readable by its owner alone, never over an existing
 * one.
 */

const alreadyExists = (path: string): CommandFailed =>
  conflict(`${path} already exists; nothing was changed`);

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code);

/** @throws {CommandFailed} `conflict` when it exists */
export function expectNoFile(path: string): void {
  if (existsSync(path)) throw alreadyExists(path);
}

async function createPart(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') throw misused(`no such directory: ${dirname(path)}`);
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
      throw new CommandFailed(
        'notAllowed',
        `cannot write to ${dirname(path)}: ${code === 'EROFS' ? 'read-only file system' : 'permission denied'}`,
      );
    }
    throw error;
  }
}

/** A hard link never overwrites. File systems without links (FAT) get a check and a rename instead. */
async function moveIntoPlace(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
    await rm(from);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw alreadyExists(to);
    expectNoFile(to);
    await rename(from, to);
  }
}

/** The file has a temporary name until `write` has filled it. @throws {CommandFailed} `conflict` */
export async function writeNewFile<T>(path: string, write: (output: Writable) => Promise<T>): Promise<T> {
  expectNoFile(path);
  const part = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.part`);
  const file = await createPart(part);
  try {
    const output = file.createWriteStream({ flush: true });
    const result = await write(output);
    if (!output.closed) await once(output, 'close');
    await moveIntoPlace(part, path);
    return result;
  } catch (error) {
    await file.close().catch(() => {});
    await rm(part, { force: true });
    throw error;
  }
}
