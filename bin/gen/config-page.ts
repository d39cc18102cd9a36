import { environmentName, SETTING_NAMES, SETTINGS, type SettingName } from '../../src/schema/settings.ts';
import { bold, entries, example, page, paragraphs } from './roff.ts';

/** gpd.toml(5), from the one table of settings. */

function defaultOf(name: SettingName): string {
  const { fallback } = SETTINGS[name];
  if (fallback === null || (Array.isArray(fallback) && fallback.length === 0)) return 'Unset by default.';
  return `Default: \`${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}\`.`;
}

const ABOUT = [
  'The settings of gpd, as TOML: one key a line, lists in brackets. It is looked for in the working directory, or where `--config` says. A flag wins over the environment, the environment over this file, this file over the default.',
  'An unknown key, here or as a `GPD_` name in the environment, is refused with exit status 78, and the nearest known one is named. What is secret belongs into files or the environment of the service, not in here.',
];

const EXAMPLE = [
  'data_dir = "/var/lib/gpd"',
  'base_url = "https://id.shop.example"',
  'trusted_proxies = ["127.0.0.1"]',
  'oidc_issuer = "https://id.example/realms/shop"',
  'oidc_audience = "https://id.shop.example"',
];

export function configPage(version: string): string {
  const about = 'settings of gpd';
  return page({ name: 'gpd.toml', section: 5, about, version }, [
    { title: 'DESCRIPTION', lines: paragraphs(ABOUT) },
    {
      title: 'SETTINGS',
      lines: entries(
        SETTING_NAMES.map((name) => ({
          term: `${bold(name)} (${bold(environmentName(name))})`,
          text: `${SETTINGS[name].doc} ${defaultOf(name)}`,
        })),
      ),
    },
    { title: 'EXAMPLES', lines: example(EXAMPLE) },
    { title: 'SEE ALSO', lines: [`${bold('gpd')}(1), ${bold('gpd-serve')}(1), ${bold('gpd-doctor')}(1)`] },
  ]);
}
