import { type Checkpoint, signedCheckpoint } from '../ledger/note.ts';
import { orElse } from '../lib/functions.ts';

/** Signed notes, one behind the other (C2SP tlog-checkpoint): name, size, root, an empty line, and lines of signatures. */
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

/** A line of a checkpoints.log, whose MAC is nobody's to check elsewhere. */
function noteOf(line: string): string[] {
  const note = orElse(() => (JSON.parse(line) as { note?: unknown }).note, null);
  return typeof note === 'string' ? [note] : [];
}

/** Checkpoints that somebody kept, of the log with this key; what another key signed is passed over. */
export function readKeptNotes(text: string, vkey: string): Checkpoint[] {
  const lines = text.split('\n');
  const notes = [...notesIn(lines), ...lines.filter((line) => line.startsWith('{')).flatMap(noteOf)];
  return notes.flatMap((note) => signedCheckpoint(note, vkey) ?? []);
}
