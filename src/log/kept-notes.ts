import { type Checkpoint, signedCheckpoint } from '../ledger/note.ts';
import { tryOr } from '../lib/errors.ts';

/**
 * Finds signed notes in a text (C2SP tlog-checkpoint): name, size, root, an empty line, and signature lines.
 */
function notesIn(lines: readonly string[]): string[] {
  const isSignature = (line: string | undefined): boolean => line?.startsWith('\u2014 ') === true;
  return lines.flatMap((_, i) => {
    const [, size = '', , empty, first] = lines.slice(i, i + 5);
    if (!/^\d+$/.test(size) || empty !== '' || !isSignature(first)) return [];
    let end = i + 5;
    while (isSignature(lines[end])) end += 1;
    return [`${lines.slice(i, end).join('\n')}\n`];
  });
}

/** The note in a line of checkpoints.log; its MAC cannot be checked without that installation's key. */
function noteOf(line: string): string[] {
  const note = tryOr(() => (JSON.parse(line) as { note?: unknown }).note, null);
  return typeof note === 'string' ? [note] : [];
}

/**
 * Checkpoints of the log with this key, from a file that somebody stored; notes of other keys are ignored.
 */
export function readKeptNotes(text: string, vkey: string): Checkpoint[] {
  const lines = text.split('\n');
  const notes = [...notesIn(lines), ...lines.filter((line) => line.startsWith('{')).flatMap(noteOf)];
  return notes.flatMap((note) => signedCheckpoint(note, vkey) ?? []);
}
