import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** Opens files that a person names, and never waits for another process. */

export class NotRegularFile extends Error {
  constructor(path: string) {
    super(`${path}: not a regular file`);
    this.name = 'NotRegularFile';
  }
}

/**
 * Without O_NONBLOCK the open of a FIFO would wait for a writer, and a signal would not end it.
 * @returns a descriptor that the caller closes
 * @throws {NotRegularFile} for a FIFO, a device or a folder, {Error} of node:fs
 */
export function openRegularFile(path: string): number {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new NotRegularFile(path);
}

/** @throws {NotRegularFile} as `openRegularFile` */
export function readRegularFile(path: string): Buffer {
  const descriptor = openRegularFile(path);
  try {
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
