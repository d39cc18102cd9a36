// Prints the variables of a systemd EnvironmentFile as shell assignments, which packaging/debian/gpd evaluates. Every value is in
// single quotes, so that no part of it is shell code. usage: node bin/environment.mjs FILE
import { readFileSync, realpathSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** @typedef {(read: Reading, char: string) => string} Step returns the next state */
/** @typedef {{ name: string, value: string, blank: string, found: Map<string, string> }} Reading */

const isNewline = (/** @type {string} */ char) => char === '\n' || char === '\r';
const isBlank = (/** @type {string} */ char) => char === ' ' || char === '\t';

/**
 * Stores the pair and begins the next line.
 * @type {Step}
 */
function endValue(read) {
  const name = read.name.trimEnd();
  if (/^[A-Za-z_]\w*$/.test(name)) read.found.set(name, read.value);
  Object.assign(read, { name: '', value: '', blank: '' });
  return 'line';
}

/**
 * @param {Reading} read
 * @param {string} text
 */
function addText(read, text) {
  read.value += read.blank + text;
  read.blank = '';
}

/**
 * The states of parse_env_file in systemd's src/basic/env-file.c: systemd.exec(5), EnvironmentFile=.
 * @type {Readonly<Record<string, Step>>}
 */
const STATES = {
  line(read, char) {
    if (char === '#' || char === ';') return 'comment';
    if (isNewline(char) || isBlank(char)) return 'line';
    read.name = char;
    return 'name';
  },
  name(read, char) {
    if (char === '=') return 'before';
    if (isNewline(char)) return 'line';
    read.name += char;
    return 'name';
  },
  // Quotes are special only before the first unquoted character: `a"b"` keeps them.
  before(read, char) {
    if (isNewline(char)) return endValue(read, char);
    if (char === "'") return 'single';
    if (char === '"') return 'double';
    return isBlank(char) ? 'before' : (STATES['plain']?.(read, char) ?? '');
  },
  plain(read, char) {
    if (isNewline(char)) return endValue(read, char);
    if (char === '\\') {
      addText(read, '');
      return 'escape';
    }
    if (isBlank(char)) read.blank += char;
    else addText(read, char);
    return 'plain';
  },
  escape(read, char) {
    if (!isNewline(char)) addText(read, char);
    return 'plain';
  },
  single(read, char) {
    if (char === "'") return 'before';
    addText(read, char);
    return 'single';
  },
  double(read, char) {
    if (char === '"') return 'before';
    if (char === '\\') return 'doubleEscape';
    addText(read, char);
    return 'double';
  },
  doubleEscape(read, char) {
    if ('"\\`$'.includes(char)) addText(read, char);
    else if (char !== '\n') addText(read, `\\${char}`);
    return 'double';
  },
  comment(_read, char) {
    if (char === '\\') return 'commentEscape';
    return isNewline(char) ? 'line' : 'comment';
  },
  // Debian 12 (systemd 252) joins the next line to the comment; systemd 254 and newer do not.
  commentEscape: () => 'comment',
};

/**
 * @param {string} text
 * @returns {Map<string, string>}
 */
export function parseEnvironment(text) {
  const read = { name: '', value: '', blank: '', found: new Map() };
  let state = 'line';
  for (const char of text) state = STATES[state]?.(read, char) ?? '';
  if (!['line', 'name', 'comment', 'commentEscape'].includes(state)) endValue(read, '');
  return read.found;
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const [file = ''] = process.argv.slice(2);
  for (const [name, value] of parseEnvironment(readFileSync(file, 'utf8')))
    process.stdout.write(`export ${name}='${value.replaceAll("'", "'\\''")}'\n`);
}
