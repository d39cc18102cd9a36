import type { Signals } from '../../schema/signals.ts';
import type { AgentFacts } from '../user-agent.ts';

/**
 * Privacy defenses (signals.md section 3): recognised only by at least three concordant marks with the right engine,
 * otherwise "I am Tor" would be a bypass. A defense never exempts an A rule.
 */
export type Defense = 'firefox-rfp' | 'brave';

const MARKS_NEEDED = 3;

const agree = (marks: readonly boolean[]): boolean => marks.filter(Boolean).length >= MARKS_NEEDED;

function near(value: number | null | undefined, target: number): boolean {
  return value != null && Math.abs(value - target) < target * 0.05;
}

function allScreensEqual(signals: Signals): boolean {
  const screen = signals.screen;
  if (screen?.width == null || screen.height == null) return false;
  const widths = [screen.width, screen.outerWidth, screen.innerWidth];
  const heights = [screen.height, screen.outerHeight, screen.innerHeight];
  return (
    widths.every((width) => width === screen.width) && heights.every((height) => height === screen.height)
  );
}

function isRfp(signals: Signals, agent: AgentFacts): boolean {
  if (agent.engine !== 'gecko') return false;
  const { graphics, time, media, page } = signals;
  return agree([
    (graphics?.canvasFlatBadPixels ?? 0) > 0,
    graphics?.renderer === 'Mozilla',
    near(time?.clockStepMs, 16.67),
    time?.zone === 'UTC' || time?.zone === 'Atlantic/Reykjavik',
    page?.maxTouchPoints === 5 && media?.pointer === 'fine',
    allScreensEqual(signals),
  ]);
}

function isBrave(signals: Signals, agent: AgentFacts): boolean {
  if (agent.engine !== 'blink') return false;
  const { page, graphics } = signals;
  const branded = page?.uaData?.brands?.some((entry) => entry.brand === 'Brave') ?? false;
  return agree([
    page?.brave === true || branded,
    page?.gpc === true,
    graphics?.canvasStable === false || (graphics?.canvasFlatBadPixels ?? 0) > 0,
    graphics?.audioStable === false,
  ]);
}

export function recogniseDefenses(signals: Signals, agent: AgentFacts): readonly Defense[] {
  const found: Defense[] = [];
  if (isRfp(signals, agent)) found.push('firefox-rfp');
  if (isBrave(signals, agent)) found.push('brave');
  return found;
}
