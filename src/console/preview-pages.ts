import { join } from 'node:path';
import type { Response, Router } from 'express';
import { languageSchema } from '../schema/banner.ts';
import type { Context } from './context.ts';
import { readBanner } from './insight-service.ts';
import type { PageTable } from './page-table.ts';
import type { Visit } from './session-guard.ts';

/**
 * The consent banner itself, on an isolated page: its own origin (no cookie, no storage), no connection to
 * anywhere, and a stub server in the page. What is pressed there is sent to nobody.
 */

/** The page's own script and style: its own origin counts as another site, so they are open, as the banner is. */
const FILES = ['preview.js', 'preview.css'] as const;

const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    // Also outside of the frame.
    'sandbox allow-scripts',
  ].join('; ');

/** What the page of purposes may do besides: show this one. */
export const framing = (base: string): string => `${base}; frame-src 'self'`;

export function readLanguage(value: unknown): string {
  const read = languageSchema.safeParse(value);
  return read.success ? read.data : 'en';
}

async function showBanner(context: Context, { request, response, staff }: Visit): Promise<void> {
  const shown = await readBanner(context, staff, readLanguage(request.query['lang']));
  response.set({ 'x-frame-options': 'SAMEORIGIN' });
  context.render(response, 'banner', { ...shown, policy });
}

export const previewPages: PageTable = { pages: { '/banner': ['reviewer', showBanner] } };

export function previewFiles(router: Router, { views }: Context): void {
  for (const name of FILES) {
    router.get(`/banner/${name}`, (_request, response: Response) => {
      response.set({ 'cross-origin-resource-policy': 'cross-origin', 'cache-control': 'no-cache' });
      response.sendFile(join(views, 'assets', name), { cacheControl: false });
    });
  }
}
