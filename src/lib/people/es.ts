import type { PageWords } from './words.ts';

/** The texts of people's pages in Spanish. */

export const PAGE: PageWords = {
  'site.language': 'Idioma',
  'site.unnamed': 'Control del dispositivo',
  'class.human': 'Una persona',
  'class.declared_agent': 'Un agente declarado',
  'class.undeclared_automation': 'Una visita automatizada',
  'class.unknown': 'Sin decidir',
  'class.agent': 'Una petición que rechazaron las reglas del sitio para agentes',
  'held.title': 'Lo que el control del dispositivo de este sitio guarda sobre usted',
  'case.title': 'Su objeción a una decisión automatizada',
};
