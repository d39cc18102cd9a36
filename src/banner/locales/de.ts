import type { Words } from '../view/words.ts';

export const words: Words = {
  title: 'Ihre Entscheidung',
  body: 'Vor Ihrer Entscheidung wird nichts erhoben. Sie können sie jederzeit ändern.',
  accept: 'Zustimmen',
  reject: 'Ablehnen',
  settings: 'Einstellungen',
  acceptAll: 'Allem zustimmen',
  rejectAll: 'Alles ablehnen',
  save: 'Auswahl speichern',
  close: 'Schließen',
  reopen: 'Datenschutz-Auswahl',
  policy: 'Datenschutzerklärung',
  gpc: 'Global Privacy Control wird beachtet',
  gpcWhy: 'Ihr Browser bittet Websites, dies zu unterlassen; deshalb bleibt es aus.',
  granted: 'Sie haben am {date} zugestimmt.',
  denied: 'Sie haben am {date} abgelehnt.',
  withdrawn: 'Sie haben am {date} widerrufen.',
  until: 'Nach dem {date} fragen wir erneut.',
  entry: 'Eintrag Nr. {seq}',
  whyPolicy: 'Die Erklärung hat sich geändert, deshalb fragen wir erneut.',
  whyExpired: 'Ihre Entscheidung ist abgelaufen, deshalb fragen wir erneut.',
  whyPurpose: 'Etwas Neues braucht Ihre Entscheidung.',
  saved: 'Ihre Entscheidung wurde gespeichert.',
  later: 'Ihre Entscheidung gilt hier. Der Server erfährt davon, sobald er erreichbar ist.',
  failed:
    'Ihre Entscheidung konnte nicht gespeichert werden, deshalb wird nichts erhoben. Bitte versuchen Sie es noch einmal.',
};
