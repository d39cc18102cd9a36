import type { PageWords } from './words.ts';

/** The texts of people's pages in French. */

export const PAGE: PageWords = {
  'site.language': 'Langue',
  'site.unnamed': 'Contrôle de l’appareil',
  'class.human': 'Une personne',
  'class.declared_agent': 'Un agent déclaré',
  'class.undeclared_automation': 'Une visite automatisée',
  'class.unknown': 'Non décidé',
  'class.agent': 'Une requête refusée par les règles du site pour les agents',
  'held.title': 'Ce que le contrôle de l’appareil de ce site conserve sur vous',
  'case.title': 'Votre contestation d’une décision automatisée',
};
