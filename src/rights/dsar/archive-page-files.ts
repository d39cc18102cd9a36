import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import { RULES, type RulePolicy } from '../../ingest/verdict/classify.ts';
import { classText, ruleText } from '../../ingest/verdict/verdict-words.ts';
import type { PeopleLanguage } from '../../lib/languages.ts';
import { visibleText } from '../../lib/text.ts';
import { formatWords, readWords } from '../../notify/mail-words-files.ts';
import { CSV_COLUMNS } from './decisions-csv.ts';
import type { DsarDecision, DsarHead } from './service.ts';

/**
 * The two pages of the archive: no script, nothing loaded from anywhere, one style sheet that their own
 * policy names.
 */

/** Facts about the decisions, gathered while they pass. */
export interface DecisionSummary {
  count: number;
  readonly byClass: Map<string, number>;
  readonly shown: DsarDecision[];
  /** One of the ids may be shared with other people. */
  shared: boolean;
}

interface PageFacts extends Readonly<DecisionSummary> {
  readonly head: DsarHead;
  readonly policy: RulePolicy;
  /** The language of the summary at the top; null: English, as the page is. */
  readonly language: PeopleLanguage | null;
  /** The version of gpd. */
  readonly version: string;
  /** Fingerprint of the certificate that signs. */
  readonly fingerprint: string;
}

const VIEWS = fileURLToPath(new URL('../../../views/', import.meta.url));
const SHEETS = ['tokens.css', 'base.css', 'parts.css', 'archive.css'];
const SHOWN_EVENTS = 200;

/** Text and numbers; what is not there is nothing. */
const escapeText = (value: string | number | null | undefined): string =>
  ejs.escapeXML(visibleText(String(value ?? '')));

const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' });
const dateText = (iso: string): string => DATE.format(new Date(iso));
const timeText = (iso: string): string => `${dateText(iso)}, ${TIME.format(new Date(iso))} UTC`;
const plural = (n: number, singular: string, pluralForm: string): string =>
  `${n.toLocaleString('en')} ${n === 1 ? singular : pluralForm}`;

const WORDS = { dateText, timeText, plural, classText };

async function styleOf(): Promise<{ readonly style: string; readonly styleHash: string }> {
  const sheets = await Promise.all(SHEETS.map((name) => readFile(`${VIEWS}assets/${name}`, 'utf8')));
  const style = sheets.join('\n');
  return { style, styleHash: createHash('sha256').update(style).digest('base64') };
}

/** @param name of a template in views/, without its end */
export async function renderPage(name: string, data: object): Promise<string> {
  return ejs.renderFile(
    `${VIEWS}${name}.ejs`,
    { ...data, ...WORDS, ...(await styleOf()) },
    { escape: escapeText },
  );
}

/** Rules as they weigh in the tenant's decisions; one that is switched off has no weight. */
function rulesOf(policy: RulePolicy) {
  const weights = new Map(policy.rules.map(({ id, weight }) => [id, weight]));
  return RULES.map(({ id, kind, text }) => ({ id, kind, text, weight: weights.get(id) ?? null }));
}

type Meanings = Readonly<Record<string, string>>;
type Codebook = Readonly<Record<'classes' | 'kinds' | 'defenses' | 'fields' | 'columns', Meanings>>;

/**
 * Reads the meaning of every word and field of an export, written for the person; a translation is another
 * file. Fields of export.json are named by path, `[]` is “each of the list”. Columns of decisions.csv are
 * listed where a decision has no such field.
 */
export async function readCodebook(): Promise<Codebook> {
  return JSON.parse(await readFile(`${VIEWS}dsar/codebook.en.json`, 'utf8')) as Codebook;
}

const toEntries = (meanings: Meanings) => Object.entries(meanings).map(([name, text]) => ({ name, text }));

/** The words of the summary in the person's language, for `partials/summary.ejs`. */
function summaryIn(language: PeopleLanguage | null) {
  if (language === null || language === 'en') return null;
  const words = readWords(`dsar/summary.${language}.txt`);
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' });
  return {
    language,
    say: (key: string, values?: Readonly<Record<string, string | number>>) => formatWords(words, key, values),
    date: (iso: string): string => format.format(new Date(iso)),
    classText: (name: string) => classText(name, language),
    ruleText: (id: string) => ruleText(id, language),
  };
}

export function indexPage(facts: PageFacts): Promise<string> {
  const history = facts.head.consent?.history.slice(0, SHOWN_EVENTS) ?? [];
  const summary = summaryIn(facts.language);
  return renderPage('dsar/index', { ...facts, title: 'What is held about you', history, summary });
}

export async function codebookPage({ head, version, policy }: PageFacts): Promise<string> {
  const { classes, kinds, defenses, fields, columns } = await readCodebook();
  const columnText = (name: string): string => columns[name] ?? fields[`decisions[].${name}`] ?? '';
  return renderPage('dsar/codebook', {
    head,
    version,
    policyVersion: policy.version,
    title: 'What the words mean',
    classes: toEntries(classes),
    kinds: toEntries(kinds),
    defenses: toEntries(defenses),
    rules: rulesOf(policy),
    fields: toEntries(fields),
    columns: CSV_COLUMNS.map((name) => ({ name, text: columnText(name) })),
  });
}
