/** CI-sized by default; FAULT_SIZE=full is what a release has to survive. */
const FULL = process.env['FAULT_SIZE'] === 'full';
export const sized = (ci: number, full: number): number => (FULL ? full : ci);

/** Counts are part of the result: `npm run test:fault` prints what was done and what was lost. */
export function tell(suite: string, words: string): void {
  process.stderr.write(`fault: ${suite}: ${words}\n`);
}
