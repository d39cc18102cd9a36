import { channel } from 'node:diagnostics_channel';

/** Refusals that say something is set up wrongly: the caller sees a code, and the operator would see nothing. */
export type NotedRefusal = 'unknown-origin' | 'unknown-kid' | 'unknown-key' | 'secret-key-in-page';

/** The log listens. */
export const REFUSED = 'gpd.refused';
const refused = channel(REFUSED);
export const noteRefusal = (kind: NotedRefusal): void => refused.publish(kind);
