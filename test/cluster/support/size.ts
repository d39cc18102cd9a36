/** CI-sized by default; CLUSTER_SIZE=full is what a release is measured with. */
const FULL = process.env['CLUSTER_SIZE'] === 'full';
export const sized = (ci: number, full: number): number => (FULL ? full : ci);

/** Counts are part of the result: `npm run test:cluster` prints what ran. */
export function tell(suite: string, words: string): void {
  process.stderr.write(`cluster: ${suite}: ${words}\n`);
}
