import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

/** The other banners, each as its own guide says, served by the page's server: no second connection. */

export interface Peer {
  readonly name: string;
  /** Matches the element that is the banner. */
  readonly selector: string;
  readonly head: string;
  readonly files: Readonly<Record<string, string>>;
}

const C15T = `
  import { createRoot } from 'react-dom/client';
  import { createElement as h } from 'react';
  import { ConsentBanner, ConsentManagerProvider } from '@c15t/react';
  const box = document.body.appendChild(document.createElement('div'));
  const options = { mode: 'offline', consentCategories: ['necessary', 'measurement'] };
  createRoot(box).render(h(ConsentManagerProvider, { options }, h(ConsentBanner)));`;

const VANILLA = `CookieConsent.run({ hideFromBots: false, categories: { necessary: { enabled: true, readOnly: true }, analytics: {} },
  language: { default: 'en', translations: { en: {
    consentModal: { title: 'Your choice', description: 'May we count visits to learn which pages are read?',
      acceptAllBtn: 'Accept', acceptNecessaryBtn: 'Reject', showPreferencesBtn: 'Settings' },
    preferencesModal: { title: 'Privacy choices', acceptAllBtn: 'Accept all', acceptNecessaryBtn: 'Reject all',
      savePreferencesBtn: 'Save choices', sections: [{ title: 'Audience measurement', linkedCategory: 'analytics' }] } } } } });`;

const KLARO = `var klaroConfig = { elementID: 'klaro', lang: 'en', translations: {
  en: { privacyPolicyUrl: '/privacy', purposes: { analytics: { title: 'Audience measurement' } } } },
  services: [{ name: 'stats', purposes: ['analytics'] }] };`;

function bundleC15t(modules: string): { readonly js: string; readonly css: string } {
  const { outputFiles } = buildSync({
    stdin: { contents: C15T, resolveDir: join(modules, '..'), loader: 'js' },
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
  });
  const css = readFileSync(join(modules, '@c15t/react/dist/styles.css'), 'utf8');
  return { js: outputFiles[0]?.text ?? '', css };
}

/** @param directory has `node_modules`; without it there are no peers */
export function createPeers(directory: string | undefined): readonly Peer[] {
  if (directory === undefined) return [];
  const modules = join(directory, 'node_modules');
  const read = (path: string): string => readFileSync(join(modules, path), 'utf8');
  const c15t = bundleC15t(modules);
  return [
    {
      name: 'vanilla-cookieconsent',
      selector: '#cc-main .cm',
      head: `<link rel="stylesheet" href="/vanilla.css"><script src="/vanilla.js" defer></script><script src="/vanilla-run.js" defer></script>`,
      files: {
        '/vanilla.css': read('vanilla-cookieconsent/dist/cookieconsent.css'),
        '/vanilla.js': read('vanilla-cookieconsent/dist/cookieconsent.umd.js'),
        '/vanilla-run.js': VANILLA,
      },
    },
    {
      name: 'klaro',
      selector: '.klaro .cookie-notice',
      head: '<script src="/klaro-config.js" defer></script><script src="/klaro.js" defer></script>',
      files: { '/klaro-config.js': KLARO, '/klaro.js': read('klaro/dist/klaro.js') },
    },
    {
      name: 'c15t (React, offline)',
      selector: '[data-testid="consent-banner-card"]',
      head: '<link rel="stylesheet" href="/c15t.css"><script src="/c15t.js" defer></script>',
      files: { '/c15t.css': c15t.css, '/c15t.js': c15t.js },
    },
  ];
}
