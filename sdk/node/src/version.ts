/** As in package.json; a test holds them together. */
export const VERSION = '0.1.0';
export const USER_AGENT = `gpd-consent-node/${VERSION}`;
