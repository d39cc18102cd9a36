/** The suites with a command of their own are CI-sized by default; with SUITE_SIZE=full, as before a release. */
export const sized = <T>(suite: 'ATTACK' | 'CLUSTER' | 'FAULT', ci: T, full: T): T =>
  process.env[`${suite}_SIZE`] === 'full' ? full : ci;
