import { startSnippet } from './snippet.ts';

/** The snippet `/v1/embed.js`, which fetches its second file from the same server. */

/** The build's version, which the address of the second file has. */
declare const VERSION: string;

// Absolute, because a script of another origin has no address to resolve against (HTML, 8.1.4.2).
startSnippet((scriptUrl) => import(new URL(`embed/${VERSION}/extras.js`, scriptUrl).href));
