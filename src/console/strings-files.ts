import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/** Every text of the console is in views/console/strings.en.json: a translation is another file. */
export type Translate = (key: string, values?: Readonly<Record<string, string | number>>) => string;

const numbers = new Intl.NumberFormat('en-US');
const PLACE = /\{(\w+)\}/g;

/** `key.one` is taken where `n` is 1. @throws for a key that is not there: a page without its words is a bug */
export function loadStrings(views: string): Translate {
  const file = readFileSync(join(views, 'console', 'strings.en.json'), 'utf8');
  const strings = new Map(Object.entries(z.record(z.string(), z.string()).parse(JSON.parse(file))));
  return (key, values = {}) => {
    const text = (values['n'] === 1 ? strings.get(`${key}.one`) : undefined) ?? strings.get(key);
    if (text === undefined) throw new Error(`the console has no words for ${key}`);
    return text.replace(PLACE, (_whole, name: string) => {
      const value = values[name];
      return typeof value === 'number' ? numbers.format(value) : (value ?? '');
    });
  };
}
