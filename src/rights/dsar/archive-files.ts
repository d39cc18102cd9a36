import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, type Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import { ZipFile } from 'yazl';
import { RULES, type RulePolicy } from '../../ingest/verdict/classify.ts';
import { type Bytes, meter } from '../../lib/pass-bytes.ts';
import { type Cell, csvRecord, visibleText } from '../../lib/text.ts';
import type { ContestResponse } from '../../schema/rights.ts';
import { classText } from './dsar.ts';
import { createEnveloper, type ExportRecipient } from './envelope.ts';
import { type Dsar, type DsarDecision, type DsarHead, dsarJson } from './service.ts';
import type { ArchiveSigner } from './signer-store.ts';

/**
 * The staff export (contract 6.5): a ZIP that a person can read, a program can read, and anybody can check. The decisions
 * are read once and never held: what is written later waits in a spool.
 */

export interface ArchiveDeps {
  /** Rules that the tenant's decisions come from today. */
  readonly policyOf: (kid: string) => RulePolicy;
  readonly signer: () => Promise<ArchiveSigner>;
  /** The version of gpd. */
  readonly version: string;
  /** Directory of the spool; the system's temporary directory by default. */
  readonly spoolDirectory?: string;
}

export interface ArchiveOptions {
  /** The ZIP is signed first and then encrypted to this certificate. */
  readonly recipient?: ExportRecipient | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal;
}

/** Decisions that index.html shows; all of them are in the other two files. */
const SHOWN_DECISIONS = 500;

function countDecision(summary: DecisionSummary, decision: DsarDecision): void {
  summary.count += 1;
  summary.byClass.set(decision.class, (summary.byClass.get(decision.class) ?? 0) + 1);
  summary.shared ||= decision.needsAttestation;
  if (summary.shown.length < SHOWN_DECISIONS) summary.shown.push(decision);
}

/** Wraps an export so that each page is counted and written to the spool while it passes. */
function observeDecisions(
  dsar: Dsar,
  spool: Spool,
  summary: DecisionSummary,
  onProgress: ArchiveOptions['onProgress'],
): Dsar {
  const { head, total } = dsar;
  const contests = new Map(head.contests.map((contest) => [contest.requestId, contest]));
  return {
    head,
    total,
    async *decisions() {
      await spool.write(CSV_HEADER);
      for await (const page of dsar.decisions()) {
        for (const decision of page) {
          countDecision(summary, decision);
          await spool.write(decisionRecord(decision, contests.get(decision.requestId)));
        }
        yield page;
        onProgress?.(summary.count, Math.max(total, summary.count));
      }
    },
  };
}

/** Files go in one after the other, so that each is hashed before the manifest is written. */
function createZip(mtime: Date, signal: AbortSignal) {
  const zip = new ZipFile();
  const digests: { name: string; size: number; sha256: string }[] = [];
  return {
    stream: Readable.from(zip.outputStream, { objectMode: false }),
    digests,
    end: () => zip.end(),
    async add(name: string, content: Bytes): Promise<void> {
      const { pass, result } = meter();
      const source = Readable.from(pass(content), { objectMode: false, signal });
      const finishedReading = finished(source, { signal });
      zip.addReadStream(source, name, { mtime, mode: 0o100600 });
      await finishedReading;
      digests.push({ name, ...result() });
    },
  };
}

interface FillOptions extends Pick<ArchiveOptions, 'onProgress'> {
  readonly zip: ReturnType<typeof createZip>;
  readonly signer: ArchiveSigner;
  readonly spool: Spool;
}

async function fillArchive(
  { policyOf, version }: ArchiveDeps,
  dsar: Dsar,
  { zip, signer, spool, onProgress }: FillOptions,
): Promise<number> {
  const { head } = dsar;
  const policy = policyOf(head.subject.tenant);
  const summary: DecisionSummary = { count: 0, byClass: new Map(), shown: [], shared: false };
  await zip.add('export.json', dsarJson(observeDecisions(dsar, spool, summary, onProgress)));
  await zip.add('decisions.csv', spool.read());
  const facts = { head, policy, version, fingerprint: signer.fingerprint, ...summary };
  await zip.add('index.html', [await indexPage(facts)]);
  await zip.add('codebook.html', [await codebookPage(facts)]);
  const manifest = createManifest(head, {
    gpdVersion: version,
    policyVersion: policy.version,
    decisions: summary.count,
    files: zip.digests,
  });
  await zip.add('manifest.json', [manifest]);
  await zip.add('manifest.p7s', [signer.sign(manifest)]);
  zip.end();
  return summary.count;
}

/**
 * Writes the archive to `output` and ends it. Whatever fails destroys `output` and is thrown.
 * @returns the hash and the size of the written file, and the fingerprint of the certificate that signed
 */
export async function writeArchive(
  deps: ArchiveDeps,
  dsar: Dsar,
  output: Writable,
  { recipient, onProgress, signal: stop }: ArchiveOptions = {},
) {
  const signer = await deps.signer();
  const spool = await openSpool(deps.spoolDirectory ?? tmpdir());
  const abort = new AbortController();
  const signal = stop ? AbortSignal.any([stop, abort.signal]) : abort.signal;
  const zip = createZip(new Date(dsar.head.generatedAt), signal);
  const { pass, result } = meter();
  const envelope = recipient ? createEnveloper(recipient, randomBytes) : new PassThrough();
  const pipelineEnd = pipeline(zip.stream, envelope, pass, output, { signal });
  try {
    // Whichever fails stops the other.
    const [decisions] = await Promise.all([
      fillArchive(deps, dsar, { zip, signer, spool, onProgress }),
      pipelineEnd,
    ]);
    return { decisions, encrypted: recipient !== undefined, signer: signer.fingerprint, ...result() };
  } catch (error) {
    abort.abort(error);
    await pipelineEnd.catch(() => {});
    throw error;
  } finally {
    await spool.close();
  }
}

/** `manifest.json`: what is in the archive and the hash of each file, so that one signature covers all of them. */
function createManifest({ subject, generatedAt }: DsarHead, facts: object): Buffer {
  const { tenant, reference } = subject;
  const manifest = { format: 'gpd-dsar-archive/1', tenant, subject: reference, generatedAt, ...facts };
  // CR LF, to which openssl converts a text without `-binary`: so the signature is valid either way.
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`.replaceAll('\n', '\r\n'));
}

/** The two pages of the archive: no script, nothing loaded from anywhere, one style sheet that their own policy names. */

/** Facts about the decisions, gathered while they pass. */
export interface DecisionSummary {
  count: number;
  readonly byClass: Map<string, number>;
  readonly shown: DsarDecision[];
  /** One of the ids may be shared with other people. */
  shared: boolean;
}

export interface PageFacts extends Readonly<DecisionSummary> {
  readonly head: DsarHead;
  readonly policy: RulePolicy;
  /** The version of gpd. */
  readonly version: string;
  /** Fingerprint of the certificate that signs. */
  readonly fingerprint: string;
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
const plural = (n: number, singular: string, pluralForm: string): string =>
  `${n.toLocaleString('en')} ${n === 1 ? singular : pluralForm}`;

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
function rulesOf(policy: RulePolicy) {
  const weights = new Map(policy.rules.map(({ id, weight }) => [id, weight]));
  return RULES.map(({ id, kind, text }) => ({ id, kind, text, weight: weights.get(id) ?? null }));
}

type Meanings = Readonly<Record<string, string>>;
type Codebook = Readonly<Record<'classes' | 'kinds' | 'defenses' | 'fields' | 'columns', Meanings>>;

/**
 * Reads the meaning of every word and field of an export, written for the person; a translation is another file. Fields of
 * export.json are named by path, `[]` is “each of the list”. Columns of decisions.csv are listed where a decision has no such field.
 */
export async function readCodebook(): Promise<Codebook> {
  return JSON.parse(await readFile(`${VIEWS}dsar/codebook.en.json`, 'utf8')) as Codebook;
}

const toEntries = (meanings: Meanings) => Object.entries(meanings).map(([name, text]) => ({ name, text }));

function indexPage(facts: PageFacts): Promise<string> {
  const history = facts.head.consent?.history.slice(0, SHOWN_EVENTS) ?? [];
  return render('index', { ...facts, title: 'What is held about you', history });
}

async function codebookPage({ head, version, policy }: PageFacts): Promise<string> {
  const { classes, kinds, defenses, fields, columns } = await readCodebook();
  const columnText = (name: string): string => columns[name] ?? fields[`decisions[].${name}`] ?? '';
  return render('codebook', {
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

/**
 * Room on disk for what is written now and read once later. The file has no name, and its bytes are encrypted under a key
 * that only this process has: whatever ends the process, nothing of a person is left behind.
 */
export type Spool = Awaited<ReturnType<typeof openSpool>>;

const BUFFER = 64 * 1024;

export async function openSpool(directory: string) {
  const path = join(directory, `gpd-${randomBytes(12).toString('hex')}`);
  const file = await open(path, 'wx+', 0o600);
  try {
    await rm(path);
  } catch (error) {
    await file.close();
    throw error;
  }
  const [key, iv] = [randomBytes(32), randomBytes(16)];
  const cipher = createCipheriv('aes-256-ctr', key, iv);
  let pendingTexts: string[] = [];
  let length = 0;
  let size = 0;
  const flush = async (): Promise<void> => {
    const bytes = cipher.update(pendingTexts.join(''), 'utf8');
    [pendingTexts, length] = [[], 0];
    await file.writeFile(bytes);
    size += bytes.length;
  };
  return {
    async write(text: string) {
      pendingTexts.push(text);
      length += text.length;
      if (length >= BUFFER) await flush();
    },
    /** Once, after the last write. */
    async *read() {
      await flush();
      const decipher = createDecipheriv('aes-256-ctr', key, iv);
      for (let at = 0; at < size; ) {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(BUFFER), 0, BUFFER, at);
        if (bytesRead === 0) throw new Error('the scratch file lost its end');
        at += bytesRead;
        yield decipher.update(buffer.subarray(0, bytesRead));
      }
    },
    close: () => file.close(),
  };
}

/** `decisions.csv` of the archive: one row a decision. */

type Column = readonly [
  name: string,
  read: (decision: DsarDecision, contest: ContestResponse | undefined) => Cell,
];

type Plain = { [N in keyof DsarDecision]: DsarDecision[N] extends Cell ? N : never }[keyof DsarDecision];

const plainColumns = (...names: readonly Plain[]): readonly Column[] =>
  names.map((name) => [name, (decision) => decision[name]]);

const COLUMNS: readonly Column[] = [
  ...plainColumns('requestId', 'decidedAt', 'class', 'classText', 'suspectScore', 'confidence', 'visitorId'),
  ...plainColumns('declaredAgentId', 'needsAttestation'),
  ['attested', (decision) => decision.attested?.by ?? null],
  ['rules', ({ rules }) => rules.map(({ id, weight }) => `${id} (${weight})`).join('; ')],
  ['rulesText', ({ rules }) => rules.map(({ text }) => text).join(' ')],
  ['defenses', ({ defenses }) => defenses.join('; ')],
  ...plainColumns('policyVersion', 'overridden'),
  ['whatWouldHaveChanged', (decision) => decision.whatWouldHaveChanged.text],
  ...plainColumns('restricted', 'contestId'),
  ['contestStatus', (_decision, contest) => contest?.status ?? null],
  ['contestOutcome', (_decision, contest) => contest?.outcome ?? null],
  ['contestStatement', (_decision, contest) => contest?.statement ?? null],
  ['contestReason', (_decision, contest) => contest?.reason ?? null],
];

export const CSV_COLUMNS: readonly string[] = COLUMNS.map(([name]) => name);

/** Excel takes a file without this mark for one in the character set of the country. */
const BYTE_ORDER_MARK = '\uFEFF';

const CSV_HEADER: string = BYTE_ORDER_MARK + csvRecord(CSV_COLUMNS);

function decisionRecord(decision: DsarDecision, contest: ContestResponse | undefined): string {
  return csvRecord(COLUMNS.map(([, readCell]) => readCell(decision, contest)));
}
