import type { PageWords } from './words.ts';

/** The texts of people's pages in Italian. */

export const PAGE: PageWords = {
  'site.language': 'Lingua',
  'site.unnamed': 'Controllo del dispositivo',
  'class.human': 'Una persona',
  'class.declared_agent': 'Un agente dichiarato',
  'class.undeclared_automation': 'Una visita automatizzata',
  'class.unknown': 'Non deciso',
  'class.agent': 'Una richiesta respinta dalle regole del sito per gli agenti',
  'held.title': 'Che cosa conserva su di Lei il controllo del dispositivo di questo sito',
  'case.title': 'La Sua contestazione di una decisione automatizzata',
};
