import { flag, type Group, number, text } from './read.ts';

export function collectScreen(): Group<'screen'> {
  return {
    width: number(() => screen.width),
    height: number(() => screen.height),
    availWidth: number(() => screen.availWidth),
    availHeight: number(() => screen.availHeight),
    innerWidth: number(() => innerWidth),
    innerHeight: number(() => innerHeight),
    outerWidth: number(() => outerWidth),
    outerHeight: number(() => outerHeight),
    colorDepth: number(() => screen.colorDepth),
    dpr: number(() => devicePixelRatio),
    orientation: text(() => screen.orientation.type),
    turns: flag(() => 'orientation' in window),
  };
}
