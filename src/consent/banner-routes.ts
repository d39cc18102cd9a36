import type { Request, Response } from 'express';
import { corsHeaders, FIVE_MINUTES, FOREVER, type Reply, sendBuilt } from '../http/reply.ts';
import { hasGpcHeader } from '../http/request.ts';
import { json, page, reply, type ServedRoute } from '../http/routes.ts';
import { sha256Text } from '../lib/crypto.ts';
import { Refusal } from '../lib/errors.ts';
import { languageSchema, markupQuerySchema } from '../schema/banner.ts';
import { ROUTES } from '../schema/routes.ts';
import type { Embed } from './banner-store.ts';
import type { createConsentApi } from './create-consent-service.ts';

/** The banner's texts, as JSON for its script and as markup for the page's server, and its files. */

/** A page's server keeps the markup for a minute, and asks then with the tag that it has. */
const CACHE = 'private, max-age=60';

/** The tag may have become a weak one on the way. */
function markupReply(body: string, knownTags: string | undefined, cors: Record<string, string>): Reply {
  const etag = `"${sha256Text(body)}"`;
  const headers = { ...cors, 'cache-control': CACHE, etag, vary: 'Sec-GPC, Origin' };
  if (knownTags?.includes(etag)) return { status: 304, headers, body: '' };
  return { status: 200, headers: { ...headers, 'content-type': 'text/html; charset=utf-8' }, body };
}

export const bannerRoutes = (
  deps: Pick<
    ReturnType<typeof createConsentApi>['routes'],
    'banner' | 'markup' | 'keyUse' | 'tenantOf' | 'knowsOrigin'
  >,
): readonly ServedRoute[] => [
  json(ROUTES.getBanner, ({ caller, query, headers }) => {
    const language = languageSchema.safeParse(query['lang'] ?? 'en');
    if (!language.success) {
      throw new Refusal('invalid-request', { details: ['lang: two or three small letters, as in "de"'] });
    }
    const request = { language: language.data, gpc: hasGpcHeader(headers) };
    const tenant = deps.tenantOf(caller.kid);
    deps.keyUse.noteVisit(tenant, 'all', ...(request.gpc ? (['gpc'] as const) : []));
    return deps.banner(tenant, request);
  }),
  // It notes no visit: the page's server keeps the answer, and the script asks for itself.
  reply(ROUTES.getBannerMarkup, async ({ caller, query, headers }) => {
    const parsed = markupQuerySchema.safeParse(query);
    if (!parsed.success) {
      const details = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
      throw new Refusal('invalid-request', { details });
    }
    const { lang, theme = null, nonce = null } = parsed.data;
    const language = await deps.markup.languageFor(lang);
    const shown = { language, gpc: hasGpcHeader(headers) };
    const config = await deps.banner(deps.tenantOf(caller.kid), shown);
    const markup = await deps.markup.render({ config, language, theme, nonce });
    return markupReply(markup, headers['if-none-match'], corsHeaders(headers, deps.knowsOrigin));
  }),
];

const SCRIPT = 'text/javascript';

/** The banner's script and languages: the same for everyone. */
export function embedRoutes({ files, manifest }: Embed): readonly ServedRoute[] {
  const sendFile = (name: string, type: string) => async (_request: Request, response: Response) =>
    sendBuilt(response, await files(name), { type, cache: FIVE_MINUTES });
  const sendVersion =
    (name: string) =>
    async ({ params }: Request, response: Response) => {
      const { version } = await manifest();
      // Other bytes would fail the page's integrity check, so the answer is a plain 404.
      if (params['version'] !== version) throw new Refusal('not-found');
      sendBuilt(response, await files(name), { type: SCRIPT, cache: FOREVER });
    };
  return [
    page(ROUTES.getBannerScript, sendFile('embed.js', SCRIPT)),
    page(ROUTES.getBannerTypes, sendFile('embed.d.ts', 'text/plain')),
    json(ROUTES.getBannerManifest, (_call, head) => {
      head.headers['cache-control'] = 'no-cache';
      return manifest();
    }),
    // A page that pins the bytes gets all of them in one file.
    page(ROUTES.getPinnedBannerScript, sendVersion('pinned.js')),
    page(ROUTES.getBannerExtras, sendVersion('extras.js')),
  ];
}
