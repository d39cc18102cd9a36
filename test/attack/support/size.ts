/** CI-sized by default; ATTACK_SIZE=full is what a release is attacked with. */
export const FULL = process.env['ATTACK_SIZE'] === 'full';
export const sized = (ci: number, full: number): number => (FULL ? full : ci);

/** Counts are part of the result: `npm run test:attack` prints what ran. */
export function tell(suite: string, words: string): void {
  process.stderr.write(`attack: ${suite}: ${words}\n`);
}
