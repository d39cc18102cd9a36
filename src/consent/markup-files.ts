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
  readonly renderMarkup: (request: MarkupRequest) => string;
  readonly renderPicture: (request: Pick<MarkupRequest, 'config' | 'language'>) => string;
}

const BUILT = new URL('../../dist/banner/markup.js', import.meta.url);

/** Node loads a module once. */
const loadModule = async (): Promise<MarkupModule> => (await import(BUILT.href)) as MarkupModule;

export function createMarkup({ manifest }: Embed) {
  return {
    /** The language itself if the banner speaks it, otherwise English. */
    async languageFor(language: string): Promise<string> {
      return (await manifest()).languages.includes(language) ? language : 'en';
    },
    async render(request: MarkupRequest): Promise<string> {
      const { renderMarkup } = await loadModule();
      return renderMarkup(request);
    },
    /** Draws the first layer as an SVG. */
    async draw(request: Pick<MarkupRequest, 'config' | 'language'>): Promise<string> {
      const { renderPicture } = await loadModule();
      return renderPicture(request);
    },
  };
}
