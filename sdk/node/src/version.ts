/** Equal to the version in package.json, which a test checks. */
export const VERSION = '0.1.0';
export const USER_AGENT = `gpd-consent-node/${VERSION}`;
