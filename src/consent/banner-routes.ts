import type { Response } from 'express';
import { FOREVER, SHORT, sendBuilt } from '../http/built-file.ts';
import type { Handlers } from '../http/register.ts';
import { Refusal } from '../lib/errors.ts';
import type { Embed } from './embed.ts';

const SCRIPT = 'text/javascript';

type EmbedRoute = 'embedScript' | 'pinnedScript' | 'embedLanguage' | 'embedManifest' | 'embedTypes';

/** The banner's script and languages: the same for everyone. */
export function embedRoutes({ files, manifest }: Embed): Handlers<EmbedRoute> {
  const file = (name: string, type: string) => async (_call: unknown, response: Response) =>
    sendBuilt(response, await files(name), { type, cache: SHORT });
  return {
    embedScript: file('embed.js', SCRIPT),
    embedTypes: file('embed.d.ts', 'text/plain'),
    embedManifest(_call, response) {
      response.set('cache-control', 'no-cache');
      return manifest();
    },
    async pinnedScript({ params }, response) {
      const { version } = await manifest();
      // Other bytes would fail the page's integrity check: better a plain 404.
      if (params.version !== version) throw new Refusal('not-found');
      sendBuilt(response, await files('embed.js'), { type: SCRIPT, cache: FOREVER });
    },
    async embedLanguage({ params: { version: asked, language } }, response) {
      const { version, languages } = await manifest();
      if (language === null || !languages.includes(language)) throw new Refusal('not-found');
      // A script of another version still finds words, and falls back to its own English for what they lack.
      const cache = asked === version ? FOREVER : SHORT;
      sendBuilt(response, await files(`${language}.json`), { type: 'application/json', cache });
    },
  };
}
