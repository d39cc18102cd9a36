/** Defaults of the tests, where nothing depends on the value. */

export const KID = 'acme';
export const ORIGIN = 'https://shop.example';
/** The second tenant of an installation. */
export const OTHER = 'other';
export const OTHER_ORIGIN = 'https://other.example';
/** What a reviewer writes: long enough to count as a reason. */
export const REASON = 'Looked at the evidence: a person at a shared office computer.';
