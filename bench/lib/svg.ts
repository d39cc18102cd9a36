import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { formatGoal, formatNumber, isMissed, type Row } from './report.ts';

/**
 * Draws the table as bars for README: each row next to its goal, or to what other programs take. The colours follow the
 * reader's scheme; a status is also a word, because colour alone says nothing to some readers.
 */

/** A value of another program in the unit of a row. */
interface Peer {
  readonly name: string;
  readonly value: number;
}

export type DrawnRow = Row & { readonly peers?: readonly Peer[] };

const WIDTH = 760;
const NAME_X = 16;
const BAR_X = 220;
const BAR_WIDTH = 260;
const TEXT_X = BAR_X + BAR_WIDTH + 16;
const LINE = 26;
const BAR = 12;
const TOP = 60;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .quiet { fill: #59636e } .bar { fill: #3b6fb6 } .missed { fill: #b3471d } .peer { fill: #a3adb8 }
  .goal { stroke: #1f2328; stroke-width: 2 } .page { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #9ba5b0 } .bar { fill: #7aa7e6 } .missed { fill: #f08a5d } .peer { fill: #59636e }
    .goal { stroke: #e6edf3 } .page { fill: #0d1117 }
  }`;

const escapeText = (text: string): string =>
  text.replace(/[&<>]/g, (char) => ({ '&': '&amp;', '<': '&lt;' })[char] ?? '&gt;');

function drawText(x: number, y: number, text: string, kind = ''): string {
  return `<text x="${x}" y="${y}"${kind && ` class="${kind}"`}>${escapeText(text)}</text>`;
}

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly text: string;
  readonly kind: 'bar' | 'missed' | 'peer';
  readonly goal: number | null;
}

/** The bars of a row share a scale, which ends behind the largest of them and the goal. */
function barsOf(row: DrawnRow): readonly Bar[] {
  const { name, value, unit, goal, peers = [] } = row;
  const limit = goal && ('atMost' in goal ? goal.atMost : goal.atLeast);
  const target = goal ? `, goal ${formatGoal(goal).replace('<=', '≤').replace('>=', '≥')}` : '';
  const text = `${formatNumber(value)} ${unit}${target}${isMissed(row) ? ', missed' : ''}`;
  const first: Bar = { name, value, text, kind: isMissed(row) ? 'missed' : 'bar', goal: limit };
  const peerBars = peers.map((peer): Bar => {
    const shown = `${formatNumber(peer.value)} ${unit}`;
    return { ...peer, text: shown, kind: 'peer', goal: null };
  });
  return [first, ...peerBars];
}

function drawRow(row: DrawnRow, y: number): string {
  const bars = barsOf(row);
  const largest = Math.max(...bars.flatMap(({ value, goal }) => [value, goal ?? 0])) * 1.1;
  const widthOf = (value: number): number => Math.round((value / largest) * BAR_WIDTH);
  return bars
    .map(({ name, value, text, kind, goal }, i) => {
      const top = y + i * LINE;
      const base = top + BAR - 1;
      const at = BAR_X + widthOf(goal ?? 0);
      const mark =
        goal === null
          ? ''
          : `<line class="goal" x1="${at}" x2="${at}" y1="${top - 4}" y2="${top + BAR + 4}"/>`;
      const bar = `<rect class="${kind}" x="${BAR_X}" y="${top}" width="${widthOf(value)}" height="${BAR}" rx="2"/>`;
      return `${drawText(NAME_X, base, name, kind === 'peer' ? 'quiet' : '')}${bar}${mark}${drawText(TEXT_X, base, text, 'quiet')}`;
    })
    .join('\n');
}

/** @param caption names commit, machine and date @returns an SVG document; rows without a value are left out */
export function drawTable(rows: readonly DrawnRow[], caption: string): string {
  const finiteRows = rows.filter(({ value }) => Number.isFinite(value));
  const parts: string[] = [];
  let y = TOP;
  for (const row of finiteRows) {
    parts.push(drawRow(row, y));
    y += LINE * (1 + (row.peers?.length ?? 0));
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 4}" role="img" aria-label="Measurements of gpd">
<style>${STYLE}
</style>
<rect class="page" width="${WIDTH}" height="${y + 4}"/>
${drawText(NAME_X, 24, 'gpd next to its floors: shorter is better, unless the goal says ≥; the line is the goal')}
${drawText(NAME_X, 44, caption, 'quiet')}
${parts.join('\n')}
</svg>
`;
}

/** The commit and the machine of this run. */
export function describeRun(facts: { readonly size: string; readonly now: Date }): string {
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  const [first] = cpus();
  const machine = `${cpus().length} × ${first?.model.trim() ?? 'unknown processor'}`;
  return `commit ${commit}, ${machine}, Node ${process.versions.node}, ${facts.size}, ${facts.now.toISOString().slice(0, 10)}`;
}
