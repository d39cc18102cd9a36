import fc from 'fast-check';

/** fast-check with the seed that TEST_SEED names, so that one commit is judged by one set of cases; else by chance. */
const named = process.env['TEST_SEED'];
if (named !== undefined) fc.configureGlobal({ seed: Number(named) % 2 ** 31 });

export { fc };
