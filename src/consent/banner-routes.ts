import type { Router } from 'express';
import { type BuiltFiles, FOREVER, SHORT, sendBuilt } from '../http/built-file.ts';
import { type AuthorizeDeps, authorize, type Scope } from '../http/caller.ts';
import { exactRouter } from '../http/exact-router.ts';
import { onlyMethods, open, openMethods } from '../http/methods.ts';
import { hasGpcHeader } from '../http/network.ts';
import { requestFacts } from '../http/server.ts';
import { Refusal } from '../lib/errors.ts';
import { type BannerResponse, type EmbedManifest, languageSchema } from '../schema/banner.ts';

/** The banner's script and languages: the same for everybody. */

const SCRIPT = 'text/javascript';

export interface EmbedDeps {
  readonly files: BuiltFiles;
  readonly manifest: () => Promise<EmbedManifest>;
}

function fileRoutes({ files, manifest }: EmbedDeps): Router {
  const router = exactRouter();
  router
    .route('/v1/embed.js')
    .get(async (request, response) => {
      sendBuilt(request, response, await files('embed.js'), { type: SCRIPT, cache: SHORT });
    })
    .all(openMethods('GET', 'HEAD'));
  router
    .route('/v1/embed.d.ts')
    .get(async (request, response) => {
      sendBuilt(request, response, await files('embed.d.ts'), { type: 'text/plain', cache: SHORT });
    })
    .all(openMethods('GET', 'HEAD'));
  router
    .route('/v1/embed.json')
    .get(async (_request, response) => {
      response.set({ ...open, 'cache-control': 'no-cache' }).json(await manifest());
    })
    .all(openMethods('GET', 'HEAD'));
  router
    .route('/v1/embed/:version/embed.js')
    .get(async (request, response) => {
      const { version } = await manifest();
      // Other bytes would fail the page's integrity check: better a plain 404.
      if (request.params.version !== version) throw new Refusal('not-found', { headers: open });
      sendBuilt(request, response, await files('embed.js'), { type: SCRIPT, cache: FOREVER });
    })
    .all(openMethods('GET', 'HEAD'));
  router
    .route('/v1/embed/:version/:language.json')
    .get(async (request, response) => {
      const { version, languages } = await manifest();
      const { language } = request.params;
      if (!languages.includes(language)) throw new Refusal('not-found', { headers: open });
      // A script of another version still finds words, and falls back to its own English for what they lack.
      const cache = request.params.version === version ? FOREVER : SHORT;
      sendBuilt(request, response, await files(`${language}.json`), { type: 'application/json', cache });
    })
    .all(openMethods('GET', 'HEAD'));
  return router;
}

/** What the banner of one tenant shows. */
export interface BannerDeps extends AuthorizeDeps {
  readonly banner: (
    kid: string,
    request: { readonly language: string; readonly gpc: boolean },
  ) => Promise<BannerResponse>;
}

const ANY_KEY: readonly Scope[] = ['publishable', 'secret', 'read-only', 'operator'];

function bannerRoute(deps: BannerDeps): Router {
  const router = exactRouter();
  router
    .route('/v1/consent/banner')
    .get(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), ANY_KEY);
      const language = languageSchema.safeParse(request.query['lang'] ?? 'en');
      if (!language.success) {
        throw new Refusal('invalid-request', { details: ['lang: two or three small letters, as in "de"'] });
      }
      const gpc = hasGpcHeader(request.headers);
      const shown = await deps.banner(kid, { language: language.data, gpc });
      response.set({ 'cache-control': 'no-store' }).json(shown);
    })
    .all(onlyMethods('GET', 'HEAD', 'OPTIONS'));
  return router;
}

export function embedRoutes(deps: { readonly embed: EmbedDeps; readonly banner: BannerDeps }): Router {
  return exactRouter().use(fileRoutes(deps.embed)).use(bannerRoute(deps.banner));
}
