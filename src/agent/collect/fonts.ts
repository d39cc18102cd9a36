import { attempt } from '../../browser/page.ts';
import { canvasIn, type FrameRealm } from './frame.ts';

/**
 * Fonts that come with an operating system, not with a program. The order is the wire format: the first is
 * the highest bit of the first hex digit. Never reorder; a changed list needs a new `collector` version.
 */
export const FONTS = [
  'Segoe UI',
  'Segoe UI Emoji',
  'Segoe UI Variable',
  'Segoe Fluent Icons',
  'Segoe Script',
  'Calibri',
  'Cambria Math',
  'Candara',
  'Consolas',
  'Constantia',
  'Corbel',
  'Ebrima',
  'Gabriola',
  'Gadugi',
  'Javanese Text',
  'Leelawadee UI',
  'Malgun Gothic',
  'Microsoft YaHei',
  'Microsoft JhengHei',
  'MS Gothic',
  'Yu Gothic',
  'Myanmar Text',
  'Nirmala UI',
  'Sitka Text',
  'SimSun',
  'Bahnschrift',
  'HoloLens MDL2 Assets',
  'Ink Free',
  'Franklin Gothic Medium',
  'Sylfaen',
  'Helvetica Neue',
  'Menlo',
  'Monaco',
  'Geneva',
  'Lucida Grande',
  'Avenir Next',
  'Optima',
  'Futura',
  'Gill Sans',
  'Hoefler Text',
  'Apple Chancery',
  'Chalkboard SE',
  'Skia',
  'PingFang SC',
  'Hiragino Sans',
  'Kohinoor Devanagari',
  'Galvji',
  'Apple SD Gothic Neo',
  'STIX Two Text',
  'New York',
  'DejaVu Sans',
  'Liberation Sans',
  'Noto Sans',
  'Noto Color Emoji',
  'Ubuntu',
  'Cantarell',
  'FreeSans',
  'Nimbus Sans',
  'Droid Sans',
  'Noto Sans CJK SC',
  'Roboto',
  'Cutive Mono',
  'Coming Soon',
  'Carrois Gothic SC',
] as const;

/** With digits, because emoji fonts have no letters. */
const SAMPLE = 'mwiIO&07';
/** On no system does this name a font of the list: a font that is its own fallback would look missing. */
const FALLBACK = 'serif';

/**
 * Compares width and outline: a font with the widths of another (Arial, Liberation Sans) still has its own
 * outline.
 */
function createMeasure(realm: FrameRealm | null): (family: string) => string {
  const context = canvasIn(realm).getContext('2d');
  if (!context) throw new Error('no canvas');
  return (family) => {
    context.font = `64px ${family}`;
    const { width, actualBoundingBoxAscent, actualBoundingBoxRight } = context.measureText(SAMPLE);
    return `${width} ${actualBoundingBoxAscent} ${actualBoundingBoxRight}`;
  };
}

export function collectFonts(realm: FrameRealm | null): string | null {
  return attempt(() => {
    const measure = createMeasure(realm);
    const without = measure(FALLBACK);
    const bits = FONTS.map((font) => (measure(`"${font}",${FALLBACK}`) === without ? '0' : '1')).join('');
    return (bits.match(/.{4}/g) ?? []).map((digit) => Number.parseInt(digit, 2).toString(16)).join('');
  });
}
