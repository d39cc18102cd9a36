import type { Brand } from './read.ts';

/** User-Agent Client Hints (WICG): Chromium only, so absent from the DOM types. */
export interface UaData {
  readonly brands: Iterable<Brand>;
  readonly mobile: boolean;
  readonly platform: string;
  getHighEntropyValues(hints: readonly string[]): Promise<Readonly<Record<string, unknown>>>;
}

/** Properties that some browsers have beyond the DOM types. */
interface RichNavigator {
  readonly userAgentData?: UaData;
  readonly deviceMemory?: number;
  readonly globalPrivacyControl?: boolean;
}

/** The navigator of a page or of a worker; asked for late, so that importing the agent touches nothing. */
export const nav = (): Navigator & RichNavigator => navigator;
