import { type Checkpoint, verifyCheckpoint } from '../ledger/checkpoint.ts';
import { parseVkey } from '../ledger/vkey.ts';

/** A signed note behind others; or a line of a checkpoints.log, whose MAC is nobody's to check elsewhere. */
const NOTE = /^[^\n{][^\n]*\n\d+\n[^\n]+\n\n(?:— [^\n]+\n)+/gmu;

function noteOf(line: string): string[] {
  try {
    const { note } = JSON.parse(line) as { note?: unknown };
    return typeof note === 'string' ? [note] : [];
  } catch {
    return [];
  }
}

/** Checkpoints that somebody kept, of the log with this key; what another key signed is passed over. */
export function readKeptNotes(text: string, vkey: string): Checkpoint[] {
  const key = parseVkey(vkey);
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  const notes = [...(text.match(NOTE) ?? []), ...lines.flatMap(noteOf)];
  return notes.flatMap((note) => {
    const verified = key && verifyCheckpoint(note, key);
    return verified?.ok ? [verified.checkpoint] : [];
  });
}
