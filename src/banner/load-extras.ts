import type { extras } from './extras.ts';

/** Fetches the banner's second file, in the way of the script that the page has. */

export type ImportExtras = () => Promise<{ readonly extras: typeof extras }>;
export type LoadExtras = () => Promise<typeof extras | null>;

/** A server that takes the connection and never answers must not keep the settings closed. */
const TIMEOUT_MS = 6000;

/** @returns a function that answers null if the file did not come; a later call may get it */
export const createLoader = (importExtras: ImportExtras): LoadExtras => {
  // A tag without an address throws at once, and that is a file that did not come.
  const load = async () => (await importExtras()).extras;
  return () =>
    Promise.race([load(), new Promise<null>((resolve) => setTimeout(() => resolve(null), TIMEOUT_MS))]).catch(
      () => null,
    );
};
