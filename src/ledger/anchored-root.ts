import { decodeBase64Url } from '../lib/base64.ts';
import { entryTime } from './entries.ts';
import { appendLeaves, type Frontier, frontierRoot } from './frontier.ts';
import { leafHash } from './merkle.ts';

/**
 * RFC 6962 tree over commitments in their order, a leaf being the raw bytes of one. One that is changed, missing, added or out
 * of order gives another root.
 * @param commitments base64url, for example of `commitVerdict`; those that come after the ones in `frontier`
 */
export function addCommitments(frontier: Frontier, commitments: readonly string[]): Frontier {
  const leaves = commitments.map((text) => {
    const bytes = decodeBase64Url(text);
    if (bytes === null) throw new TypeError('a commitment is not base64url');
    return leafHash(bytes);
  });
  return appendLeaves(frontier, leaves).frontier;
}

/**
 * The body of `verdicts.sealed` and `audit.sealed` (contract section 7).
 * @param from epoch milliseconds, as `to`; the rows covered are those from `from` on and before `to`
 */
export function anchorBody(from: number, to: number, frontier: Frontier) {
  return {
    from: entryTime(from),
    to: entryTime(to),
    count: frontier.size,
    /** Lower-case hex, as every hash that the API tells. */
    root: frontierRoot(frontier).toString('hex'),
  };
}
