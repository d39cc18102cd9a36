import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, type Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import { ZipFile } from 'yazl';
import { type Policy, RULES } from '../../ingest/verdict/policy.ts';
import { type Bytes, meter } from '../../lib/pass-bytes.ts';
import { type Cell, csvRecord, visibleText } from '../../lib/text.ts';
import type { ContestResponse } from '../../schema/rights.ts';
import { classText } from './dsar.ts';
import { makeEnveloper, type Recipient } from './envelope.ts';
import { type Dsar, type DsarDecision, type DsarHead, dsarJson } from './service.ts';
import type { ArchiveSigner } from './signer.ts';

/**
 * The staff export (contract 6.5): a ZIP that a person can read, a program can read, and anybody can check. The decisions
 * are read once and never held: what is written later waits in a spool.
 */

export interface ArchiveDeps {
  /** Rules that the tenant's decisions come from today. */
  readonly policyOf: (kid: string) => Policy;
  readonly signer: () => Promise<ArchiveSigner>;
  /** Of gpd. */
  readonly version: string;
  /** Where the spool lies; the system's temporary directory by default. */
  readonly spoolDirectory?: string;
}

export interface ArchiveOptions {
  /** The ZIP is signed first and then encrypted to this certificate. */
  readonly recipient?: Recipient | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal;
}

/** Decisions that index.html shows; all of them are in the other two files. */
const SHOWN_DECISIONS = 500;

function note(seen: Seen, decision: DsarDecision): void {
  seen.count += 1;
  seen.byClass.set(decision.class, (seen.byClass.get(decision.class) ?? 0) + 1);
  seen.shared ||= decision.needsAttestation;
  if (seen.shown.length < SHOWN_DECISIONS) seen.shown.push(decision);
}

/** The same export, which notes each page as it passes. */
function observed(dsar: Dsar, spool: Spool, seen: Seen, onProgress: ArchiveOptions['onProgress']): Dsar {
  const { head, total } = dsar;
  const contests = new Map(head.contests.map((contest) => [contest.requestId, contest]));
  return {
    head,
    total,
    async *decisions() {
      await spool.write(CSV_HEADER);
      for await (const page of dsar.decisions()) {
        for (const decision of page) {
          note(seen, decision);
          await spool.write(decisionRecord(decision, contests.get(decision.requestId)));
        }
        yield page;
        onProgress?.(seen.count, Math.max(total, seen.count));
      }
    },
  };
}

/** Files go in one after the other, so that each is hashed before the manifest is written. */
function makeZip(mtime: Date, signal: AbortSignal) {
  const zip = new ZipFile();
  const digests: { name: string; size: number; sha256: string }[] = [];
  return {
    stream: Readable.from(zip.outputStream, { objectMode: false }),
    digests,
    end: () => zip.end(),
    async add(name: string, content: Bytes): Promise<void> {
      const { pass, result } = meter();
      const source = Readable.from(pass(content), { objectMode: false, signal });
      const done = finished(source, { signal });
      zip.addReadStream(source, name, { mtime, mode: 0o100600 });
      await done;
      digests.push({ name, ...result() });
    },
  };
}

interface Filling extends Pick<ArchiveOptions, 'onProgress'> {
  readonly zip: ReturnType<typeof makeZip>;
  readonly signer: ArchiveSigner;
  readonly spool: Spool;
}

async function fill(
  { policyOf, version }: ArchiveDeps,
  dsar: Dsar,
  { zip, signer, spool, onProgress }: Filling,
): Promise<number> {
  const { head } = dsar;
  const policy = policyOf(head.subject.tenant);
  const seen: Seen = { count: 0, byClass: new Map(), shown: [], shared: false };
  await zip.add('export.json', dsarJson(observed(dsar, spool, seen, onProgress)));
  await zip.add('decisions.csv', spool.read());
  const facts = { head, policy, version, fingerprint: signer.fingerprint, ...seen };
  await zip.add('index.html', [await indexPage(facts)]);
  await zip.add('codebook.html', [await codebookPage(facts)]);
  const manifest = makeManifest(head, {
    gpdVersion: version,
    policyVersion: policy.version,
    decisions: seen.count,
    files: zip.digests,
  });
  await zip.add('manifest.json', [manifest]);
  await zip.add('manifest.p7s', [signer.sign(manifest)]);
  zip.end();
  return seen.count;
}

/**
 * Writes the archive to `output` and ends it. Whatever fails destroys `output` and is thrown.
 * @returns with the hash and the size of what was written, and the fingerprint of the certificate that signed
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
  const zip = makeZip(new Date(dsar.head.generatedAt), signal);
  const { pass, result } = meter();
  const envelope = recipient ? makeEnveloper(recipient, randomBytes) : new PassThrough();
  const written = pipeline(zip.stream, envelope, pass, output, { signal });
  try {
    // Whichever fails stops the other.
    const [decisions] = await Promise.all([fill(deps, dsar, { zip, signer, spool, onProgress }), written]);
    return { decisions, encrypted: recipient !== undefined, signer: signer.fingerprint, ...result() };
  } catch (error) {
    abort.abort(error);
    await written.catch(() => {});
    throw error;
  } finally {
    await spool.close();
  }
}

/** `manifest.json`: what is in the archive and the hash of each file, so that one signature covers all of them. */
function makeManifest({ subject, generatedAt }: DsarHead, facts: object): Buffer {
  const { tenant, reference } = subject;
  const manifest = { format: 'gpd-dsar-archive/1', tenant, subject: reference, generatedAt, ...facts };
  // CR LF, to which openssl converts a text without `-binary`: so the signature is valid either way.
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`.replaceAll('\n', '\r\n'));
}

/** The two pages of the archive: no script, nothing loaded from anywhere, one style sheet that their own policy names. */

/** What is learnt of the decisions while they pass by. */
export interface Seen {
  count: number;
  readonly byClass: Map<string, number>;
  readonly shown: DsarDecision[];
  /** One of the ids may be shared with other people. */
  shared: boolean;
}

export interface PageFacts extends Readonly<Seen> {
  readonly head: DsarHead;
  readonly policy: Policy;
  /** Of gpd. */
  readonly version: string;
  /** Of the certificate that signs. */
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

type Meanings = Readonly<Record<string, string>>;
type Codebook = Readonly<Record<'classes' | 'kinds' | 'defenses' | 'fields' | 'columns', Meanings>>;

/**
 * What every word and field of an export means, said to the person concerned: a translation is another file. Fields of
 * export.json by path, `[]` is “each of the list”; columns of decisions.csv that are no field of a decision by the same name.
 */
export async function readCodebook(): Promise<Codebook> {
  return JSON.parse(await readFile(`${VIEWS}dsar/codebook.en.json`, 'utf8')) as Codebook;
}

const listed = (meanings: Meanings) => Object.entries(meanings).map(([name, text]) => ({ name, text }));

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
    classes: listed(classes),
    kinds: listed(kinds),
    defenses: listed(defenses),
    rules: rulesOf(policy),
    fields: listed(fields),
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
  let waiting: string[] = [];
  let length = 0;
  let size = 0;
  const flush = async (): Promise<void> => {
    const bytes = cipher.update(waiting.join(''), 'utf8');
    [waiting, length] = [[], 0];
    await file.writeFile(bytes);
    size += bytes.length;
  };
  return {
    async write(text: string) {
      waiting.push(text);
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

const asTheyAre = (...names: readonly Plain[]): readonly Column[] =>
  names.map((name) => [name, (decision) => decision[name]]);

const COLUMNS: readonly Column[] = [
  ...asTheyAre('requestId', 'decidedAt', 'class', 'classText', 'suspectScore', 'confidence', 'visitorId'),
  ...asTheyAre('declaredAgentId', 'needsAttestation'),
  ['attested', (decision) => decision.attested?.by ?? null],
  ['rules', ({ rules }) => rules.map(({ id, weight }) => `${id} (${weight})`).join('; ')],
  ['rulesText', ({ rules }) => rules.map(({ text }) => text).join(' ')],
  ['defenses', ({ defenses }) => defenses.join('; ')],
  ...asTheyAre('policyVersion', 'overridden'),
  ['whatWouldHaveChanged', (decision) => decision.whatWouldHaveChanged.text],
  ...asTheyAre('restricted', 'contestId'),
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
  return csvRecord(COLUMNS.map(([, read]) => read(decision, contest)));
}
