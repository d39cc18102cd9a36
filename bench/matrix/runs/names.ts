import { programVersion } from '../lib/programs.ts';

/** Names that people and scripts give their browsers. */

/** The name that the installed Chromium has on a desktop, with a screen. */
export function desktopChrome(system = 'X11; Linux x86_64'): string {
  const major = programVersion('chromium')?.split('.', 1)[0] ?? '0';
  return `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`;
}

export const WINDOWS_FIREFOX =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:153.0) Gecko/20100101 Firefox/153.0';

export const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1';
