/** The texts of people's pages in English, the reference: the files of the other languages have its keys. */

/** `/my-data`, `/case` and refusals, as the server renders them. */
export const PAGE = {
  'site.language': 'Language',
  'site.unnamed': 'Device check',
  'class.human': 'A person',
  'class.declared_agent': 'A declared agent',
  'class.undeclared_automation': 'An automated visit',
  'class.unknown': 'Not decided',
  'class.agent': 'A request that the site’s policy for agents refused',
  'held.title': 'What this site’s device check holds about you',
  'case.title': 'Your objection to an automated decision',
} as const;
