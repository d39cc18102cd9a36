/** Default values for tests that do not depend on the value. */

export const KID = 'acme';
export const ORIGIN = 'https://shop.example';
/** The second tenant of an installation. */
export const OTHER = 'other';
export const OTHER_ORIGIN = 'https://other.example';
/** The reason of a ruling, long enough to be accepted. */
export const REASON = 'Looked at the evidence: a person at a shared office computer.';
