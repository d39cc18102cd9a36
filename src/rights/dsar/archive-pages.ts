import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import { type Policy, RULES } from '../../ingest/classify/policy.ts';
import { CLASS_MEANINGS, CSV_MEANINGS, DEFENSE_MEANINGS, FIELD_MEANINGS, KIND_MEANINGS } from './codebook.ts';
import { CSV_COLUMNS } from './decisions-csv.ts';
import { classText } from './dsar.ts';
import type { DsarDecision, DsarHead } from './service.ts';
import { visibleText } from './visible-text.ts';

/** The two pages of the archive: no script, nothing loaded from anywhere, one style sheet that their own policy names. */

export interface PageFacts {
  readonly head: DsarHead;
  readonly policy: Policy;
  /** Of gpd. */
  readonly version: string;
  /** Of the certificate that signs. */
  readonly fingerprint: string;
  readonly count: number;
  readonly byClass: ReadonlyMap<string, number>;
  readonly shown: readonly DsarDecision[];
  /** One of the ids may be shared with other people. */
  readonly shared: boolean;
}

const VIEWS = fileURLToPath(new URL('../../../views/', import.meta.url));
const SHEETS = ['tokens.css', 'base.css', 'archive.css'];
const SHOWN_EVENTS = 200;

/** Text and numbers; what is not there is nothing. */
const escapeText = (value: string | number | null | undefined): string =>
  ejs.escapeXML(visibleText(String(value ?? '')));

const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' });
const dateText = (iso: string): string => DATE.format(new Date(iso));
const timeText = (iso: string): string => `${dateText(iso)}, ${TIME.format(new Date(iso))} UTC`;
const plural = (n: number, one: string, many: string): string =>
  `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

const WORDS = { dateText, timeText, plural, classText };

async function styleOf(): Promise<{ readonly style: string; readonly styleHash: string }> {
  const sheets = await Promise.all(SHEETS.map((name) => readFile(`${VIEWS}assets/${name}`, 'utf8')));
  const style = sheets.join('\n');
  return { style, styleHash: createHash('sha256').update(style).digest('base64') };
}

async function render(name: string, data: object): Promise<string> {
  return ejs.renderFile(
    `${VIEWS}dsar/${name}.ejs`,
    { ...data, ...WORDS, ...(await styleOf()) },
    { escape: escapeText },
  );
}

/** Rules as they weigh in the tenant's decisions; one that is switched off has no weight. */
function rulesOf(policy: Policy) {
  const weights = new Map(policy.rules.map(({ id, weight }) => [id, weight]));
  return RULES.map(({ id, kind, text }) => ({ id, kind, text, weight: weights.get(id) ?? null }));
}

function columnsOf(): readonly { readonly name: string; readonly text: string }[] {
  const own = new Map(CSV_MEANINGS.map(({ name, text }) => [name, text]));
  const fields = new Map(FIELD_MEANINGS.map(({ name, text }) => [name, text]));
  return CSV_COLUMNS.map((name) => ({
    name,
    text: own.get(name) ?? fields.get(`decisions[].${name}`) ?? '',
  }));
}

export function indexPage(facts: PageFacts): Promise<string> {
  const history = facts.head.consent?.history.slice(0, SHOWN_EVENTS) ?? [];
  return render('index', { ...facts, title: 'What is held about you', history });
}

export function codebookPage({ head, version, policy }: PageFacts): Promise<string> {
  return render('codebook', {
    head,
    version,
    policyVersion: policy.version,
    title: 'What the words mean',
    classes: CLASS_MEANINGS,
    kinds: KIND_MEANINGS,
    defenses: DEFENSE_MEANINGS,
    rules: rulesOf(policy),
    fields: FIELD_MEANINGS,
    columns: columnsOf(),
  });
}
