import type { PageWords } from './words.ts';

/** The texts of people's pages in Polish. */

export const PAGE: PageWords = {
  'site.language': 'Język',
  'site.unnamed': 'Sprawdzanie urządzenia',
  'class.human': 'Człowiek',
  'class.declared_agent': 'Zgłoszony agent',
  'class.undeclared_automation': 'Wizyta zautomatyzowana',
  'class.unknown': 'Nie rozstrzygnięto',
  'class.agent': 'Żądanie odrzucone przez zasady tej witryny dla agentów',
  'held.title': 'Co sprawdzanie urządzeń tej strony przechowuje o Tobie',
  'case.title': 'Twoje odwołanie od zautomatyzowanej decyzji',
};
