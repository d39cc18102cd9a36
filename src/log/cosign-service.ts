import { type Config, ConfigError } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { EgressRefused } from '../egress/guard.ts';
import { addCheckpoint } from '../egress/send.ts';
import { consistencyProof } from '../ledger/merkle.ts';
import { COSIGNATURE, cosignatureOf, parseDecimal, parseNote, parseVkey } from '../ledger/note.ts';
import { HOUR, isoTime, SECOND } from '../lib/clock.ts';
import {
  type CheckpointDeps,
  currentCheckpoint,
  type Signed,
  type WitnessPolicy,
} from './checkpoint-service.ts';
import { addCosignatures, listCosigned, listDaily } from './checkpoint-store.ts';
import { createHashReader } from './entries-store.ts';

/** Asks the witnesses of GPD_WITNESSES to cosign checkpoints (C2SP tlog-witness), and finds cosigned ones. */

/** `gpd doctor` reports the failures of this job. */
export const COSIGN_JOB = 'cosign-checkpoints';

/** @throws {ConfigError} */
export function readPolicy({ witnesses: texts, witness_policy }: Config): WitnessPolicy {
  const witnesses = texts.map((text) => {
    const at = text.lastIndexOf('@');
    const key = parseVkey(text.slice(0, at), COSIGNATURE);
    if (!key) throw new ConfigError(`GPD_WITNESSES: ${text.slice(0, at)} is not the key of a witness`);
    return { key, url: text.slice(at + 1) };
  });
  if (new Set(witnesses.map(({ key }) => key.publicKey.toString('hex'))).size < witnesses.length)
    throw new ConfigError('GPD_WITNESSES: a key is named twice');
  const min = witness_policy ?? witnesses.length;
  if (min <= witnesses.length) return { witnesses, min };
  throw new ConfigError(`GPD_WITNESS_POLICY: ${min} of ${witnesses.length} witnesses cannot cosign`);
}

/** The valid cosignatures of the policy's witnesses: a writer of the database may have added other lines. */
function validCosignatures(
  witnesses: WitnessPolicy['witnesses'],
  note: string,
  lines: string,
): readonly string[] {
  const parsed = parseNote(`${note}${lines}`);
  return witnesses.flatMap(({ key }) => (parsed && cosignatureOf(parsed, key)?.line) ?? []);
}

/**
 * The newest checkpoint over at least this many entries that enough witnesses cosigned; null if none of those
 * looked at is.
 */
export async function lastWitnessed(
  { database, witnesses }: Pick<CheckpointDeps, 'database' | 'witnesses'>,
  kid: string,
  atLeast: number,
): Promise<Pick<Signed, 'text' | 'size' | 'signedAt'> | null> {
  if (!witnesses || witnesses.witnesses.length === 0) return null;
  for (const { lines, ...checkpoint } of await listCosigned(database, kid, atLeast)) {
    const good = validCosignatures(witnesses.witnesses, checkpoint.text, lines);
    if (good.length >= witnesses.min) return { ...checkpoint, text: checkpoint.text + good.join('') };
  }
  return null;
}

/** The last checkpoint of each day between two times, with the cosignatures of the witnesses. */
export async function dailyCheckpoints(
  { database, witnesses }: Pick<CheckpointDeps, 'database' | 'witnesses'>,
  kid: string,
  range: Parameters<typeof listDaily>[2],
): Promise<readonly { readonly text: string; readonly size: number }[]> {
  const daily = await listDaily(database, kid, range);
  return daily.map(({ text, lines, size }) => ({
    size,
    text: text + validCosignatures(witnesses?.witnesses ?? [], text, lines).join(''),
  }));
}

/** The newest checkpoint that each witness cosigned, or null; `gpd witness status` shows it. */
export async function lastCosigned(database: Database, witnesses: WitnessPolicy['witnesses'], kid: string) {
  const checkpoints = await listCosigned(database, kid, 0);
  return witnesses.map(({ key, url }) => {
    const witness = { name: key.name, url };
    for (const { text, lines, size } of checkpoints) {
      const note = parseNote(`${text}${lines}`);
      const found = note && cosignatureOf(note, key);
      if (found) return { ...witness, size, cosignedAt: isoTime(found.time * SECOND) };
    }
    return { ...witness, size: null, cosignedAt: null };
  });
}

export type CosignFailure = 'unreachable' | 'refused' | 'fork';

/** `code` names the witness: `gpd doctor` shows it. */
class NotCosigned extends Error {
  readonly code: string;
  readonly reason: CosignFailure;

  constructor(reason: CosignFailure, witness: string, detail: string) {
    super(`${witness}: ${detail}`);
    this.name = 'NotCosigned';
    this.code = `${reason} ${witness}`;
    this.reason = reason;
  }
}

interface CosignDeps extends CheckpointDeps {
  readonly witnesses: WitnessPolicy;
  /**
   * Called when a witness has a tree that this log does not extend: once per process, until it cosigns again.
   */
  readonly onFork: (kid: string, data: object) => Promise<void>;
  readonly onAnswer: (result: 'cosigned' | CosignFailure) => void;
}

type Witness = WitnessPolicy['witnesses'][number];

/**
 * A 409 answer has the witness's size, so two requests are enough; a third allows for another node that signs
 * meanwhile.
 */
const TRIES = 3;

async function requestCosignature(
  deps: CosignDeps,
  kid: string,
  { key, url }: Witness,
  { text, size, known: knownSize }: Signed & { readonly known: number },
): Promise<string | null> {
  const { database } = deps;
  const refuse = (reason: CosignFailure, detail: string) => new NotCosigned(reason, key.name, detail);
  let witnessSize = knownSize;
  for (let i = 0; i < TRIES; i += 1) {
    if (witnessSize > size) {
      // Another node may have signed a longer one meanwhile.
      const now = await currentCheckpoint(deps, kid, 0, HOUR);
      if (now && now.size >= witnessSize) return null;
      throw refuse('fork', `it cosigned ${witnessSize} entries, and this log has ${size}`);
    }
    const needsProof = witnessSize > 0 && witnessSize < size;
    const proof = needsProof
      ? await consistencyProof(witnessSize, size, createHashReader(database, kid))
      : [];
    const lines = [`old ${witnessSize}`, ...proof.map((hash) => hash.toString('base64'))];
    const { status, text: answer } = await addCheckpoint(url, `${lines.join('\n')}\n\n${text}`).catch(
      (error: unknown) => {
        throw error instanceof EgressRefused ? refuse('unreachable', error.message) : error;
      },
    );
    if (status === 422)
      throw refuse('fork', `this log does not extend the ${witnessSize} entries that it cosigned`);
    if (status === 200) {
      const note = parseNote(text + answer);
      const line = note && cosignatureOf(note, key)?.line;
      if (line) return line;
      throw refuse('refused', 'its answer has no cosignature with its key');
    }
    const answeredSize = status === 409 ? parseDecimal(answer.replace(/\n$/, '')) : null;
    if (answeredSize === null) throw refuse('refused', `it answered ${status}`);
    if (answeredSize === witnessSize)
      throw refuse('fork', `it cosigned a different tree of ${witnessSize} entries`);
    witnessSize = answeredSize;
  }
  throw refuse('refused', 'its size changes with every answer');
}

export function createCosigning(deps: CosignDeps) {
  const { database, witnesses: policy, onFork, onAnswer } = deps;
  const sizes = new Map<string, number>();
  const forked = new Set<string>();
  const busy = new Set<string>();

  async function askOne(kid: string, witness: Witness, checkpoint: Signed): Promise<void> {
    const id = `${kid} ${witness.url}`;
    const knownSize = Math.min(sizes.get(id) ?? 0, checkpoint.size);
    try {
      const line = await requestCosignature(deps, kid, witness, { ...checkpoint, known: knownSize });
      if (line === null) return;
      sizes.set(id, checkpoint.size);
      forked.delete(id);
      onAnswer('cosigned');
      await addCosignatures(database, kid, checkpoint, (lines) =>
        validCosignatures(policy.witnesses, checkpoint.text, lines + line),
      );
    } catch (error) {
      if (!(error instanceof NotCosigned)) throw error;
      onAnswer(error.reason);
      if (error.reason === 'fork' && !forked.has(id)) {
        forked.add(id);
        const { text: refused, size } = checkpoint;
        await onFork(kid, { witness: witness.key.name, size, refused, reason: error.message });
      }
      throw error;
    }
  }

  async function askAll(kid: string): Promise<void> {
    const checkpoint = await currentCheckpoint(deps, kid, 0, HOUR);
    if (!checkpoint) return;
    const [newest] = await listCosigned(database, kid, checkpoint.size);
    const lines = newest?.text === checkpoint.text ? newest.lines : '';
    const missing = policy.witnesses.filter(
      (one) => validCosignatures([one], checkpoint.text, lines).length === 0,
    );
    const results = await Promise.allSettled(missing.map((witness) => askOne(kid, witness, checkpoint)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /**
   * Asks each witness that has not cosigned the last checkpoint.
   * @throws {NotCosigned} after all were asked
   */
  return async (kid: string): Promise<void> => {
    if (policy.witnesses.length === 0 || busy.has(kid)) return;
    busy.add(kid);
    await askAll(kid).finally(() => busy.delete(kid));
  };
}
