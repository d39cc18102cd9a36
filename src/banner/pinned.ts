import { extras } from './extras.ts';
import { startSnippet } from './snippet.ts';

/** The snippet in one file, for a page that pins its bytes or serves them itself. */

startSnippet(async () => ({ extras }));
