import { orElse } from './or-else.ts';

/**
 * Null: no URL. Not by `URL.canParse`: once V8 has compiled its caller, Node 20 refuses every text with a Latin-1 character
 * beyond ASCII (`https://bücher.example`).
 */
export const parseUrl = (text: string): URL | null => orElse(() => new URL(text), null);
