import type { Database } from '../db/db.ts';
import { parseDecimal } from '../ledger/checkpoint.ts';
import { type Cosigner, makeCosigner } from '../ledger/cosignature.ts';
import { EMPTY_ROOT } from '../ledger/merkle.ts';
import { parseNote, verifyNote } from '../ledger/note.ts';
import { consistencyRoots } from '../ledger/verify.ts';
import { parseVkey } from '../ledger/vkey.ts';
import { type Clock, isoTime, SECOND } from '../lib/clock.ts';
import { equalBytes, hmacSha256 } from '../lib/hash.ts';
import type { Random } from '../lib/random.ts';
import {
  parseHashes,
  type Refused,
  treeIn,
  treeOf,
  type WitnessBook,
  type WitnessedLog,
  type WitnessedTree,
  type WitnessLine,
} from './witness-files.ts';
import { noteWitnessed } from './witness-store.ts';

/** A witness of others' logs (C2SP tlog-witness): it cosigns what extends all that it cosigned before, and nothing else. */

export interface WitnessDeps {
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly book: WitnessBook;
  readonly clock: Clock;
  readonly random: Random;
  /** Told of each kept refusal once. */
  readonly onFork: (origin: string, refused: Refused) => void;
}

export interface WitnessAnswer {
  readonly status: 200 | 400 | 403 | 404 | 409 | 422;
  readonly body: string;
}

type Submitted = NonNullable<ReturnType<typeof parseRequest>>;

const MAX_PROOF = 63;
/** Of one log; who has its key could fill the disk. */
const MAX_REFUSED = 100;

const answer = (status: WitnessAnswer['status'], body = ''): WitnessAnswer => ({ status, body });

function parseRequest(body: string) {
  const gap = body.indexOf('\n\n');
  const [first = '', ...lines] = body.slice(0, Math.max(gap, 0)).split('\n');
  const old = first.startsWith('old ') ? parseDecimal(first.slice('old '.length)) : null;
  const proof = lines.length <= MAX_PROOF ? parseHashes(lines) : null;
  const note = body.slice(gap + 2);
  const text = parseNote(note)?.text ?? '';
  const tree = treeOf(text);
  return old === null || !proof || !tree ? null : { old, lines, proof, note, text, tree };
}

/** Whether what is submitted begins with what was cosigned last. */
function compareTrees(last: WitnessedTree | null, { proof, tree }: Submitted) {
  const { size, root } = last ?? { size: 0, root: EMPTY_ROOT };
  if (size === tree.size)
    return !equalBytes(root, tree.root) ? 'fork' : proof.length === 0 ? 'extends' : 'not-proven';
  if (size === 0) return proof.length === 0 ? 'extends' : 'not-proven';
  const roots = consistencyRoots(size, tree.size, proof, root);
  if (!roots || !equalBytes(roots.newer, tree.root)) return 'not-proven';
  return equalBytes(roots.older, root) ? 'extends' : 'fork';
}

/** Both notes; of what proves nothing, such as a stranger's proof that does not fit, once for each cosigned tree. */
function refusalOf(log: WitnessedLog, submitted: Submitted, proven: boolean, at: string): Refused | null {
  const { note: refused, lines, tree } = submitted;
  const kept = log.notes.get(tree.size) ?? log.last?.note;
  const alike = [...log.refused.values()].filter((one) => one.proven === proven);
  if (kept === undefined || log.refused.has(refused) || alike.length >= MAX_REFUSED) return null;
  if (!proven && alike.some((one) => one.kept === kept)) return null;
  return { v: 1, event: 'refused', at, kept, refused, proof: [...lines], proven };
}

const witnessKey = (serverSecret: Uint8Array): Buffer => hmacSha256(serverSecret, 'gpd/witness-state/v1');

/** Half of its key is in the installation and half in witness.log: neither signs without the other. */
export async function openWitness(
  { book, serverSecret, random, clock }: Pick<WitnessDeps, 'book' | 'serverSecret' | 'random' | 'clock'>,
  newName: string,
): Promise<Cosigner> {
  const salt = Buffer.from(random(32)).toString('base64url');
  await book.append(({ key }) =>
    key ? null : { v: 1, event: 'key', at: isoTime(clock()), name: newName, salt },
  );
  const { key } = await book.read();
  const { name, salt: kept } = key ?? { name: newName, salt };
  return makeCosigner(name, hmacSha256(serverSecret, `gpd/witness-key/v1\n${kept}`));
}

interface Decision {
  readonly answer: WitnessAnswer;
  /** What has to be durable before that. */
  readonly line: WitnessLine | null;
}

function decide(log: WitnessedLog, submitted: Submitted, at: string): Decision {
  const { last, notes } = log;
  const { old, tree, note } = submitted;
  const size = last?.size ?? 0;
  const conflict = answer(409, `${size}\n`);
  const kept = notes.get(tree.size);
  if (kept !== undefined && !equalBytes(treeIn(kept).root, tree.root))
    return { answer: conflict, line: refusalOf(log, submitted, true, at) };
  if (old !== size) return { answer: conflict, line: null };
  const comparison = compareTrees(last, submitted);
  if (comparison === 'extends') {
    const isNew = last === null || tree.size > size;
    return { answer: answer(200), line: isNew ? { v: 1, event: 'cosigned', at, note } : null };
  }
  return { answer: answer(422), line: refusalOf(log, submitted, comparison === 'fork', at) };
}

/** @returns answers one `add-checkpoint`. @throws {WitnessRolledBack} {BrokenChain} {Unavailable}: nothing is signed */
export function makeWitness(deps: WitnessDeps, cosigner: Cosigner) {
  const { database, serverSecret, book, clock, onFork } = deps;
  return async (body: string): Promise<WitnessAnswer> => {
    const submitted = parseRequest(body);
    if (!submitted) return answer(400);
    const { old, tree, note, text } = submitted;
    const log = (await book.read()).logs.get(tree.origin);
    if (!log) return answer(404);
    const key = parseVkey(log.vkey);
    const signed = parseNote(note);
    if (!key || !signed || !verifyNote(signed, key)) return answer(403);
    if (old > tree.size) return answer(400);
    const decision: { made?: Decision } = {};
    await book.append(({ logs }) => {
      decision.made = decide(logs.get(tree.origin) ?? log, submitted, isoTime(clock()));
      return decision.made.line;
    });
    const { made = { answer: answer(409), line: null } } = decision;
    if (made.line?.event === 'refused') onFork(tree.origin, made.line);
    if (made.answer.status !== 200) return made.answer;
    await noteWitnessed(database, witnessKey(serverSecret), cosigner.vkey, log);
    // A longer tree may have come in between: this one is not the longest any more.
    const size = (await book.read()).logs.get(tree.origin)?.last?.size;
    return size === tree.size
      ? answer(200, cosigner.cosign(text, Math.floor(clock() / SECOND)))
      : answer(409, `${size}\n`);
  };
}
