import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { PassThrough, Readable, type Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import type { Policy } from '../../ingest/classify/policy.ts';
import { type Bytes, meter } from '../../lib/pass-bytes.ts';
import { codebookPage, indexPage, type Seen } from './archive-pages.ts';
import type { ArchiveSigner } from './archive-signer-service.ts';
import { CSV_HEADER, decisionRecord } from './decisions-csv.ts';
import { makeEnveloper, type Recipient } from './envelope.ts';
import { type Dsar, type DsarDecision, type DsarHead, dsarJson } from './service.ts';
import { openSpool, type Spool } from './spool-files.ts';

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
