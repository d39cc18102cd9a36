import { readFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { Embed } from '../../consent/banner-store.ts';
import type { EvidenceKey } from '../../keys/evidence-key.ts';
import { type Bytes, joinLines, meter } from '../../lib/pass-bytes.ts';
import { createZip, FIXED_TIME } from '../zip-files.ts';
import { bannerParts, gpcMark } from './banner-files.ts';
import { addChoice, type ChoiceTally, definitionParts, emptyChoiceTally, gpcPart } from './definitions.ts';
import {
  type EvidenceSource,
  entryLines,
  openingLines,
  receiptDocuments,
  scanLog,
  selectEntries,
  tombstoneLines,
} from './parts-service.ts';
import {
  checkpointParts,
  listCheckpointsOf,
  type NamedText,
  type ProofSource,
  proofParts,
} from './proofs-service.ts';
import { type ReadmeFacts, readmePage } from './readme-files.ts';

/** Writes a file of evidence (contract-2 section 23): its parts in one order, with fixed times. */

const VERIFIER = fileURLToPath(new URL('../../../views/evidence/verify.py', import.meta.url));
/** The tenant has no setting for its language. */
const LANGUAGE = 'en';

export interface EvidenceInput {
  readonly source: EvidenceSource;
  readonly proofs: ProofSource;
  readonly newest: { readonly text: string; readonly size: number };
  readonly key: EvidenceKey;
  readonly embed: Embed;
  /** The texts of the policies, by version. */
  readonly policyTexts: ReadonlyMap<number, string>;
  readonly facts: Pick<ReadmeFacts, 'version' | 'subject'>;
  /** ISO 8601. */
  readonly madeAt: string;
}

type Zip = ReturnType<typeof createZip>;

async function addTexts(zip: Zip, parts: Iterable<NamedText> | AsyncIterable<NamedText>): Promise<void> {
  for await (const { name, text } of parts) await zip.add(name, [text]);
}

export interface Counts {
  entries: number;
  tombstones: number;
  readonly tally: ChoiceTally;
}

async function fillEvidence(input: EvidenceInput, zip: Zip): Promise<Counts> {
  const { source, proofs, newest, key, embed, policyTexts } = input;
  const counts: Counts = { entries: 0, tombstones: 0, tally: emptyChoiceTally() };
  const { scan, tombstone } = await scanLog(source);
  const selection = await selectEntries(source, scan, tombstone);
  const { definitions } = selection;
  const countEntry = (): void => {
    counts.entries += 1;
  };
  await zip.add('entries.ndjson', joinLines(entryLines(source, selection, countEntry)));
  await zip.add(
    'openings.ndjson',
    joinLines(openingLines(source, scan, (one) => addChoice(counts.tally, one))),
  );
  const countTombstone = (): void => {
    counts.tombstones += 1;
  };
  await zip.add('tombstones.ndjson', tombstoneLines(source, selection, tombstone, countTombstone));
  const checkpoints = await listCheckpointsOf(proofs, newest);
  await addTexts(zip, checkpointParts(proofs, key, checkpoints));
  await addTexts(zip, proofParts(proofs, checkpoints, selection));
  await addTexts(zip, definitionParts(definitions, policyTexts));
  const banner = { definitions, language: LANGUAGE };
  await addTexts(zip, bannerParts(source.reader, source.tenant.kid, embed, banner));
  await addTexts(zip, receiptDocuments(source, scan));
  await addTexts(zip, [gpcPart(counts.tally, definitions, await gpcMark(embed, LANGUAGE))]);
  const facts = {
    ...input.facts,
    ...counts,
    source,
    key,
    language: LANGUAGE,
    size: newest.size,
    definitions,
  };
  await zip.add('README.html', [await readmePage(facts)]);
  await zip.add('verify.py', [await readFile(VERIFIER)]);
  const sums = Buffer.from(zip.digests.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''));
  await zip.add('SHA256SUMS', [sums]);
  await zip.add('SHA256SUMS.jws', [key.sign(sums)]);
  // Stored: its bytes are the only ones that differ between two files of one request.
  await zip.add('made-at.txt', [`${input.madeAt}\n`], { compress: false });
  zip.end();
  return counts;
}

/**
 * Writes the file to `output` and ends it. An error destroys `output` and is thrown.
 * @returns the hash and the size of the file, and the number of entries in it
 */
export async function writeEvidence(input: EvidenceInput, output: Writable, stop?: AbortSignal) {
  const abort = new AbortController();
  const signal = stop ? AbortSignal.any([stop, abort.signal]) : abort.signal;
  const zip = createZip(FIXED_TIME, signal);
  const { pass, result } = meter();
  const pipelineEnd = pipeline(zip.stream as unknown as Bytes & NodeJS.ReadableStream, pass, output, {
    signal,
  });
  try {
    const [counts] = await Promise.all([fillEvidence(input, zip), pipelineEnd]);
    return { ...result(), entries: counts.entries, openings: counts.tally.openings };
  } catch (error) {
    abort.abort(error);
    await pipelineEnd.catch(() => {});
    throw error;
  }
}
