/** Words that an English sentence has and a German one has not. */
const ENGLISH = /\b(?:the|and|is|of|to|it|you|your|this|that|with|for|not|has)\b/gi;

/** Parts of a page that are in English in every language: code, commands, and what says that it is English. */
const CODE = /<(style|script|pre|code|title)\b[\s\S]*?<\/\1>|<(\w+)[^>]* lang="en"[^>]*>[\s\S]*?<\/\2>/g;

/** @returns the English words in what a page shows, attributes included that people meet */
export function englishWords(html: string): readonly string[] {
  const title = /<title>([^<]*)</.exec(html)?.[1] ?? '';
  const attributes = [...html.matchAll(/ (?:data-(?!offer|copy=)[\w-]+|aria-label|title|alt)="([^"]*)"/g)];
  const shown = html
    .replace(/^[\s\S]*<body/, '<body')
    .replace(CODE, ' ')
    .replace(/<[^>]*>/g, ' ');
  return [title, ...attributes.map(([, text = '']) => text), shown].join(' ').match(ENGLISH) ?? [];
}
