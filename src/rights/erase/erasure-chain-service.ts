import { z } from 'zod';
import { afterLine, chainLine, NO_LINES, openLine } from '../../db/chained-line.ts';
import { hmacSha256, sha256 } from '../../lib/hash.ts';
import { orElse } from '../../lib/or-else.ts';

/** The lines of DATA_DIR/erasures.log, checked against their chain and the count that the database keeps. Pure. */

export const ERASURES = 'gpd-erasures/1';

/** The server's own secret is in the database and in every backup, and outlives a new master key. */
export const erasureLogKey = (serverSecret: Uint8Array): Buffer =>
  hmacSha256(serverSecret, 'gpd/erasures-log/v1');

const line = { v: z.literal(1), tenant: z.string(), at: z.string() };

const tombstoneSchema = z.object({
  ...line,
  receiptId: z.string(),
  subject: z.string(),
  requestedBy: z.enum(['subject', 'dpo', 'operator']),
  keep: z.object({ openContests: z.boolean(), override: z.boolean() }),
  refs: z.array(z.object({ kind: z.enum(['durable', 'request', 'principal', 'tenant']), ref: z.string() })),
});
export type Tombstone = z.infer<typeof tombstoneSchema>;

/** What else a restore must not undo. */
const cutSchema = z.discriminatedUnion('event', [
  z.object({ ...line, event: z.literal('apikey.revoked'), id: z.string() }),
  z.object({ ...line, event: z.literal('seal-key.destroyed'), generation: z.int() }),
]);
export type Cut = z.infer<typeof cutSchema>;

/** Of a legal hold: an older backup would lose it, or hold again what was released. */
const holdSchema = z.object({
  ...line,
  event: z.enum(['hold.placed', 'hold.released']),
  /** Keyed reference. */
  device: z.string(),
});
export type HoldLine = z.infer<typeof holdSchema>;
export type OutsideLine = Tombstone | Cut | HoldLine;

const lineSchema = z.union([tombstoneSchema, cutSchema, holdSchema]);
/** Two lines about one key or hold, and of one moment, have one name; null: a tombstone, which has its receipt. */
export function nameOfEnded(line: OutsideLine): string | null {
  if (!('event' in line)) return null;
  const { event, tenant, at } = line;
  const about = 'device' in line ? [line.device] : ['id' in line ? line.id : line.generation];
  return JSON.stringify([event, tenant, at, ...about]);
}

/**
 * A writer of the file without the key can at most have people erased: only a line with its MAC removes a tenant, ends a key or changes
 * a hold.
 */
const needsMac = (line: OutsideLine): boolean =>
  'event' in line || line.refs.some(({ kind }) => kind === 'tenant');

const isHold = (line: OutsideLine): line is HoldLine => 'device' in line;

/** How many lines there are, and a hash over all of them. */
export interface LogHead {
  readonly lines: number;
  /** Lower-case hex. */
  readonly hash: string;
  /** The hash after the first line, which names the log. */
  readonly first: string;
}

export const NO_HEAD: LogHead = { lines: 0, hash: '', first: '' };

export function afterBody({ lines, hash: before, first }: LogHead, body: string): LogHead {
  const hash = sha256(`${before}\n${body}`).toString('hex');
  return { lines: lines + 1, hash, first: lines === 0 ? hash : first };
}

/** The name of a log by its first line. */
export const firstOf = (lines: readonly string[]): string =>
  afterBody(NO_HEAD, withoutMac(lines[0] ?? '')).first;

export type ErasureLog = ReturnType<typeof checkLines>;

/** What a crash cut off in the middle of a line was never answered to anybody. */
export function completeLines(text: string): string[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.trim() !== '');
}

const withoutMac = (line: string): string => line.replace(/,"mac":"[\w-]{43}"\}$/, '}');

const parse = (body: string): OutsideLine | null => orElse(() => lineSchema.parse(JSON.parse(body)), null);

/** @param known what the database knows of the log; null: nothing */
export function checkLines(
  lines: readonly string[],
  key: Uint8Array,
  known: LogHead | 'changed' | null = null,
) {
  const problems: string[] = [];
  const kept = known === 'changed' ? null : known;
  if (known === 'changed') problems.push('the count that the database keeps was changed');
  const bodies: string[] = [];
  const parsed: OutsideLine[] = [];
  let [before, hasMac, head, fits] = [NO_LINES, false, NO_HEAD, kept === null || kept.lines === 0];
  for (const [i, line] of lines.entries()) {
    const opened = openLine(key, ERASURES, before, line);
    const body = withoutMac(line);
    const one = parse(body);
    if (opened === 'changed') problems.push(`line ${i + 1} was changed, or one before it is missing`);
    else if (one === null || (opened === 'no-mac' && (hasMac || i >= (kept?.lines ?? lines.length))))
      problems.push(`line ${i + 1} is damaged`);
    hasMac ||= opened !== 'no-mac';
    before = afterLine(before, Buffer.from(line));
    head = afterBody(head, body);
    if (head.lines === kept?.lines) fits = head.hash === kept.hash;
    bodies.push(body);
    if (one && (typeof opened === 'object' || !needsMac(one))) parsed.push(one);
  }
  const missing = (kept?.lines ?? 0) - lines.length;
  if (missing > 0) problems.push(`${missing} lines are missing at the end`);
  else if (!fits) problems.push(`the first ${kept?.lines} lines are not those that the database knows`);
  return {
    tombstones: parsed.filter((line): line is Tombstone => 'receiptId' in line),
    cuts: parsed.filter((line): line is Cut => 'event' in line && !isHold(line)),
    holds: parsed.filter(isHold),
    /** Without their MACs. */
    bodies,
    head,
    /** In words, with the number of the line; null: nothing is changed or missing. */
    problem: problems[0] ?? null,
  };
}

/** The same bodies as a new chain. */
export function chainBodies(bodies: readonly string[], key: Uint8Array): string[] {
  let before = NO_LINES;
  return bodies.map((body) => {
    const line = chainLine(key, ERASURES, before, body);
    before = afterLine(before, Buffer.from(line));
    return line;
  });
}

/** The bodies of all lines that may be given a new MAC. */
function chainableBodies(lines: readonly string[], key: Uint8Array): string[] {
  let before = NO_LINES;
  return lines.flatMap((line) => {
    const opened = openLine(key, ERASURES, before, line);
    before = afterLine(before, Buffer.from(line));
    const body = withoutMac(line);
    const one = parse(body);
    return typeof opened === 'object' || one === null || !needsMac(one) ? [body] : [];
  });
}

/** All lines of both, each once: those of this directory as they are, and then what only the backup has. */
export function mergeLines(ours: readonly string[], carried: readonly string[], key: Uint8Array) {
  if (ours.length === 0) return carried;
  const known = new Set(ours.map(withoutMac));
  const more = chainableBodies(carried, key).filter((body) => !known.has(body));
  return more.length === 0 ? ours : chainBodies([...chainableBodies(ours, key), ...more], key);
}
