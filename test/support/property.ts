import fc from 'fast-check';

/**
 * fast-check with the seed in TEST_SEED, so that the cases
 * of a commit can be repeated; without it they are random.
 */
const seed = process.env['TEST_SEED'];
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) % 2 ** 31 });

export { fc };
