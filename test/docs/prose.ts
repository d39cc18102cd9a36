import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export const readPage = (path: string): string => readFileSync(join(root, path), 'utf8');

const LOCALES = ['src/lib/people/en.ts', 'src/lib/people/staff/en.json', 'src/banner/locales/en.ts'];

/** Paths of what people read, from the root; man pages are generated from the commands' help. */
export function listPages(): readonly string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name));
  const texts = readdirSync(join(root, 'views'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.en\.\w+$/.test(name))
    .map((name) => join('views', name));
  return ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs, ...texts, ...LOCALES];
}

/** @returns per file of src the comments and English texts that a reader of the program meets */
export function sourceWords(): readonly (readonly [file: string, words: string])[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => [join('src', name), wordsOf(name, readPage(join('src', name)))]);
}

function wordsOf(name: string, source: string): string {
  const { comments, program } = parseSync(name, source);
  const words = comments.map(({ value }) => value.replace(/^\s*\*/gm, ''));
  new Visitor({
    Literal: ({ value }) => void (typeof value === 'string' && words.push(value)),
    TemplateElement: ({ value }) => void words.push(value.raw.replaceAll('\\`', "'")),
  }).visit(program);
  return words.join('\n');
}

/** A page without code, link targets and tables' rules; one space for all white space. */
export function withoutCode(text: string): string {
  return text
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/`[^`]*`/g, 'code')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/\s+/g, ' ');
}
