import { each, flag, type Group, number, text } from './read.ts';

export function collectScreen(): Group<'screen'> {
  return {
    ...each(number, () => screen, 'width', 'height', 'availWidth', 'availHeight'),
    ...each(number, () => window, 'innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'),
    colorDepth: number(() => screen.colorDepth),
    dpr: number(() => devicePixelRatio),
    orientation: text(() => screen.orientation.type),
    turns: flag(() => 'orientation' in window),
  };
}
