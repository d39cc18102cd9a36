import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { PassThrough, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { RulePolicy } from '../../ingest/verdict/classify.ts';
import { languageOf, type PeopleLanguage } from '../../lib/languages.ts';
import { meter } from '../../lib/pass-bytes.ts';
import { createZip } from '../zip-files.ts';
import { codebookPage, type DecisionSummary, indexPage } from './archive-page-files.ts';
import { CSV_HEADER, decisionRecord } from './decisions-csv.ts';
import { createEnveloper, type ExportRecipient } from './envelope.ts';
import { type Dsar, type DsarDecision, type DsarHead, dsarJson } from './service.ts';
import type { ArchiveSigner } from './signer-store.ts';
import { openSpool, type Spool } from './spool-files.ts';

/**
 * The staff export (contract 6.5): a ZIP that a person can read, a program can read, and anybody can check.
 * The decisions are read once and never held: what is written later waits in a spool.
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
  /** The summary's language; undefined: that of the person's newest objection, if it is known. */
  readonly language?: PeopleLanguage | undefined;
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

interface FillOptions extends Pick<ArchiveOptions, 'onProgress' | 'language'> {
  readonly zip: ReturnType<typeof createZip>;
  readonly signer: ArchiveSigner;
  readonly spool: Spool;
}

function languageOfContests({ contests, complaints }: DsarHead): PeopleLanguage | null {
  const newestFirst = [...contests, ...complaints].sort((a, b) => b.filedAt.localeCompare(a.filedAt));
  const language = newestFirst.find((contest) => contest.language !== null)?.language ?? null;
  return language === null ? null : languageOf(language);
}

async function fillArchive(
  { policyOf, version }: ArchiveDeps,
  dsar: Dsar,
  { zip, signer, spool, onProgress, language }: FillOptions,
): Promise<number> {
  const { head } = dsar;
  const policy = policyOf(head.subject.tenant);
  const summary: DecisionSummary = { count: 0, byClass: new Map(), shown: [], shared: false };
  await zip.add('export.json', dsarJson(observeDecisions(dsar, spool, summary, onProgress)));
  await zip.add('decisions.csv', spool.read());
  const facts = {
    head,
    policy,
    version,
    language: language ?? languageOfContests(head),
    fingerprint: signer.fingerprint,
    ...summary,
  };
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
  { recipient, onProgress, language, signal: stop }: ArchiveOptions = {},
) {
  const signer = await deps.signer();
  const spool = await openSpool(deps.spoolDirectory ?? tmpdir());
  const abort = new AbortController();
  const signal = stop ? AbortSignal.any([stop, abort.signal]) : abort.signal;
  const zip = createZip({ mtime: new Date(dsar.head.generatedAt) }, signal);
  const { pass, result } = meter();
  const envelope = recipient ? createEnveloper(recipient, randomBytes) : new PassThrough();
  const pipelineEnd = pipeline(zip.stream, envelope, pass, output, { signal });
  try {
    // Whichever fails stops the other.
    const [decisions] = await Promise.all([
      fillArchive(deps, dsar, { zip, signer, spool, onProgress, language }),
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

/**
 * `manifest.json`: what is in the archive and the hash of each file, so that one signature covers all of
 * them.
 */
function createManifest({ subject, generatedAt }: DsarHead, facts: object): Buffer {
  const { tenant, reference } = subject;
  const manifest = { format: 'gpd-dsar-archive/1', tenant, subject: reference, generatedAt, ...facts };
  // CR LF, to which openssl converts a text without `-binary`: so the signature is valid either way.
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`.replaceAll('\n', '\r\n'));
}
