import type { PageWords } from './words.ts';

/** The texts of people's pages in German. */

export const PAGE: PageWords = {
  'site.language': 'Sprache',
  'site.unnamed': 'Geräteprüfung',
  'class.human': 'Ein Mensch',
  'class.declared_agent': 'Ein angemeldeter Agent',
  'class.undeclared_automation': 'Ein automatischer Besuch',
  'class.unknown': 'Nicht entschieden',
  'class.agent': 'Eine Anfrage, die die Regeln dieser Website für Agenten abgelehnt haben',
  'held.title': 'Was die Geräteprüfung dieser Website über Sie speichert',
  'case.title': 'Ihr Einwand gegen eine automatische Entscheidung',
};
