import { SCRIPT } from '../../lib/people/en.ts';
import type { ScriptWords } from '../../lib/people/words.ts';

/** The texts of the page: English is built in, and other languages come from the server. */

export interface Words {
  readonly lang: string;
  /** `?lang=` for requests to the server; nothing where the browser's header has already chosen. */
  readonly query: string;
  readonly texts: ScriptWords;
}

function wordsOf(host: HTMLElement | null, lang: string): Words | null {
  const texts = host?.dataset['words'];
  return texts === undefined
    ? null
    : { lang, query: `?lang=${lang}`, texts: JSON.parse(texts) as ScriptWords };
}

/** Reads them from the element, or from gpd's page in the language of a site's own page. */
export async function loadWords(host: HTMLElement, endpoint: string, kid: string): Promise<Words> {
  const lang = (host.closest<HTMLElement>('[lang]')?.lang || navigator.language).slice(0, 2).toLowerCase();
  const english: Words = { lang: 'en', query: '?lang=en', texts: SCRIPT };
  const given = wordsOf(host, lang) ?? (lang === 'en' ? english : null);
  if (given) {
    // On gpd's page the address says if the person chose.
    const isWhole = host.querySelector('h1') !== null;
    return isWhole && !new URLSearchParams(location.search).has('lang') ? { ...given, query: '' } : given;
  }
  try {
    const query = new URLSearchParams({ kid, lang });
    const reply = await fetch(`${endpoint}/my-data?${query}`, { headers: { accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    return wordsOf(page.querySelector('[data-words]'), page.documentElement.lang) ?? english;
  } catch {
    return english;
  }
}
