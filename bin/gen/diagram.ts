/**
 * Draws docs/diagrams/*.txt as SVG. One line, one thing; positions are in tens of pixels:
 *
 *     title TEXT                           zone X,Y WxH NAME
 *     box ID X,Y WxH LINE | LINE …         note X,Y TEXT
 *     state ID X,Y WxH LINE | LINE …       arrow ID.SIDE -> ID.SIDE [dashed] [@X,Y] LABEL | LABEL …
 *
 * SIDE is n, e, s or w, with an offset along it: e+2. A state is a box with round ends; @X,Y is the middle of the label.
 */

const UNIT = 10;
const FONT = 13;
/** Of a system font, in pixels; wide enough that a text that is let through fits. */
const CHARACTER = 6.9;
const LINE = 17;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

type Point = readonly [x: number, y: number];

const STYLE = `svg{color-scheme:light dark}
rect,path{fill:none;stroke:#5b5f66;stroke-width:1.2}
.paper{fill:#fbfaf7;stroke:none}.box{fill:#fff}.zone{stroke-dasharray:5 4;stroke:#8a6d1f}
text{font:${FONT}px system-ui,sans-serif;fill:#17181a}.first{font-weight:600}.zone-name{fill:#7a5c10;font-weight:600}
.label{paint-order:stroke;stroke:#fbfaf7;stroke-width:5px;fill:#1d4f91}.arrow{stroke:#1d4f91}.dashed{stroke-dasharray:4 4}
marker path{fill:#1d4f91;stroke:none}
@media (prefers-color-scheme:dark){rect,path{stroke:#9aa0a8}.paper{fill:#16181b;stroke:none}.box{fill:#22262b}.zone{stroke:#c9a64a}
text{fill:#eceef0}.zone-name{fill:#dcbc66}.label{stroke:#16181b;fill:#9cc4f5}.arrow{stroke:#9cc4f5}marker path{fill:#9cc4f5;stroke:none}}`;

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const linesOf = (text: string): readonly string[] => text.split('|').map((line) => line.trim());
const pointsOf = (text: string): number[] => text.split(/[,x]/).map((one) => Number(one) * UNIT);

function boxOf(at: string, size: string): Box {
  const [x = Number.NaN, y = Number.NaN] = pointsOf(at);
  const [w = Number.NaN, h = Number.NaN] = pointsOf(size);
  if (![x, y, w, h].every(Number.isFinite)) throw new Error(`${at} ${size} is no place`);
  return { x, y, w, h };
}

function sideOf(
  boxes: ReadonlyMap<string, Box>,
  name: string,
): { readonly at: Point; readonly flat: boolean } {
  const [, id = '', side = '', offset = '0'] = /^([\w-]+)\.([nesw])([+-][\d.]+)?$/.exec(name) ?? [];
  const box = boxes.get(id);
  if (!box) throw new Error(`no box ${name}`);
  const by = Number(offset) * UNIT;
  const flat = side === 'e' || side === 'w';
  const x = side === 'e' ? box.x + box.w : side === 'w' ? box.x : box.x + box.w / 2 + by;
  const y = side === 's' ? box.y + box.h : side === 'n' ? box.y : box.y + box.h / 2 + by;
  return { at: [x, y], flat };
}

/** Right angles only. */
function route(from: ReturnType<typeof sideOf>, to: ReturnType<typeof sideOf>): readonly Point[] {
  const [[x, y], [u, v]] = [from.at, to.at];
  if (x === u || y === v) return [from.at, to.at];
  if (from.flat !== to.flat) return [from.at, from.flat ? [u, y] : [x, v], to.at];
  const [middleX, middleY] = [(x + u) / 2, (y + v) / 2];
  return from.flat
    ? [from.at, [middleX, y], [middleX, v], to.at]
    : [from.at, [x, middleY], [u, middleY], to.at];
}

function middleOf(points: readonly Point[]): Point {
  const pieces = points.slice(1).map(([x, y], i) => {
    const [u, v] = points[i] as Point;
    return { length: Math.abs(x - u) + Math.abs(y - v), middle: [(x + u) / 2, (y + v) / 2] as Point };
  });
  return pieces.reduce((best, one) => (one.length > best.length ? one : best)).middle;
}

function textAt([x, y]: Point, lines: readonly string[], name: 'box-text' | 'label'): string {
  const top = y - ((lines.length - 1) * LINE) / 2 + FONT / 3;
  const spans = lines.map((line, i) => {
    const first = name === 'box-text' && i === 0 ? ' class="first"' : '';
    return `<tspan x="${x}" y="${top + i * LINE}"${first}>${escapeXml(line)}</tspan>`;
  });
  return `<text text-anchor="middle" class="${name}">${spans.join('')}</text>`;
}

function arrow(
  boxes: ReadonlyMap<string, Box>,
  rest: string,
): { readonly line: string; readonly text: string } {
  const [, from = '', to = '', dashed, place, label = ''] =
    /^(\S+) -> (\S+)(?: (dashed))?(?: @([\d.]+,[\d.]+))?(?: (.*))?$/.exec(rest) ?? [];
  const points = route(sideOf(boxes, from), sideOf(boxes, to));
  const path = points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x} ${y}`).join('');
  const line = `<path class="arrow${dashed ? ' dashed' : ''}" marker-end="url(#tip)" d="${path}"/>`;
  if (label === '') return { line, text: '' };
  const [u, v] = place === undefined ? [] : pointsOf(place);
  const at: Point = u === undefined || v === undefined ? middleOf(points) : [u, v];
  return { line, text: textAt(at, linesOf(label), 'label') };
}

function drawnBox(kind: string, box: Box, lines: readonly string[]): string {
  const long = lines.find((line) => line.length * CHARACTER > box.w - 8);
  if (long !== undefined || lines.length * LINE > box.h - 4)
    throw new Error(`too small for: ${long ?? lines[0]}`);
  const round = kind === 'state' ? box.h / 2 : 6;
  const rect = `<rect class="box" x="${box.x}" y="${box.y}" width="${box.w}" height="${box.h}" rx="${round}"/>`;
  return rect + textAt([box.x + box.w / 2, box.y + box.h / 2], lines, 'box-text');
}

interface Picture {
  title: string;
  width: number;
  height: number;
  readonly boxes: Map<string, Box>;
  readonly zones: string[];
  readonly things: string[];
  readonly arrows: string[];
  /** Over the arrows. */
  readonly labels: string[];
}

function grow(picture: Picture, { x, y, w, h }: Box): void {
  picture.width = Math.max(picture.width, x + w + UNIT);
  picture.height = Math.max(picture.height, y + h + UNIT);
}

/** What each first word of a line adds. */
const KINDS: Readonly<Record<string, (picture: Picture, rest: string, kind: string) => void>> = {
  title(picture, rest) {
    picture.title = rest;
  },
  zone(picture, rest) {
    const [, at = '', size = '', name = ''] = /^(\S+) (\S+) (.*)$/.exec(rest) ?? [];
    const box = boxOf(at, size);
    grow(picture, box);
    picture.zones.push(
      `<rect class="zone" x="${box.x}" y="${box.y}" width="${box.w}" height="${box.h}" rx="10"/>`,
      `<text class="zone-name" x="${box.x + 10}" y="${box.y + 20}">${escapeXml(name)}</text>`,
    );
  },
  box: addBox,
  state: addBox,
  note(picture, rest) {
    const [, at = '', text = ''] = /^(\S+) (.*)$/.exec(rest) ?? [];
    const [x = 0, y = 0] = pointsOf(at);
    grow(picture, { x, y: y - UNIT, w: text.length * CHARACTER, h: UNIT });
    picture.things.push(`<text x="${x}" y="${y}">${escapeXml(text)}</text>`);
  },
  arrow(picture, rest) {
    const { line, text } = arrow(picture.boxes, rest);
    picture.arrows.push(line);
    if (text !== '') picture.labels.push(text);
  },
};

function addBox(picture: Picture, rest: string, kind: string): void {
  const [, id = '', at = '', size = '', text = ''] = /^(\S+) (\S+) (\S+) (.*)$/.exec(rest) ?? [];
  const box = boxOf(at, size);
  picture.boxes.set(id, box);
  grow(picture, box);
  picture.things.push(drawnBox(kind, box, linesOf(text)));
}

const TIP =
  '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>';

/** @throws {Error} for a line that it does not know, and a text that does not fit its box */
export function drawDiagram(source: string): string {
  const lists = { boxes: new Map<string, Box>(), zones: [], things: [], arrows: [], labels: [] };
  const picture: Picture = { title: '', width: 0, height: 0, ...lists };
  for (const line of source.split('\n').filter((one) => one.trim() !== '' && !one.startsWith('#'))) {
    const [, kind = '', rest = ''] = /^(\w+) (.*)$/.exec(line) ?? [];
    const add = KINDS[kind];
    if (!add) throw new Error(`unknown line: ${line}`);
    add(picture, rest, kind);
  }
  const { title, width, height, zones, things, arrows, labels } = picture;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title><style>${STYLE}</style>${TIP}`,
    `<rect class="paper" width="${width}" height="${height}"/>`,
    ...zones,
    ...things,
    ...arrows,
    ...labels,
    '</svg>',
    '',
  ].join('\n');
}
