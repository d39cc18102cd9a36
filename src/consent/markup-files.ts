import type { BannerResponse } from '../schema/banner.ts';
import type { Embed } from './banner-store.ts';

/** Draws the banner as markup, with the module that the build makes of `src/banner/view/markup.ts`. */

interface MarkupRequest {
  readonly config: BannerResponse;
  readonly language: string;
  readonly theme: string | null;
  /** The page's nonce for its styles. */
  readonly nonce: string | null;
}

interface MarkupModule {
  readonly renderMarkup: (request: MarkupRequest & { readonly words: unknown }) => string;
}

const BUILT = new URL('../../dist/banner/markup.js', import.meta.url);

export function createMarkup({ files, manifest }: Embed) {
  return {
    /** The language itself if the banner speaks it, otherwise English. */
    async languageFor(language: string): Promise<string> {
      return (await manifest()).languages.includes(language) ? language : 'en';
    },
    async render(request: MarkupRequest): Promise<string> {
      const { body } = await files(`${request.language}.json`);
      // Node loads a module once.
      const { renderMarkup } = (await import(BUILT.href)) as MarkupModule;
      return renderMarkup({ ...request, words: JSON.parse(body.toString()) as unknown });
    },
  };
}
