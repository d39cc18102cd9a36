import type { Facts, Rule } from './facts.ts';
import { isAndroidDesktopMode } from './medium-rules.ts';
import { rule, where } from './rule.ts';

/** What a driver does to a browser that shows no other mark: presses, times, permissions, a turned screen (signals.md section 2b). */

const inBlink = where(({ agent }) => agent.engine === 'blink');

/** A clock that itself counts whole milliseconds says nothing. */
const FINE_CLOCK_MS = 1;

/** X11 stamps events by whole milliseconds, Windows by its fine clock; on Wayland Chromium stamps its own. */
function windowsOnGrid({ signals, agent }: Facts): boolean {
  if (agent.os !== 'windows' || signals.input?.offGrid !== false) return false;
  return (signals.time?.clockStepMs ?? FINE_CLOCK_MS) < FINE_CLOCK_MS;
}

const DESKTOPS = new Set(['windows', 'macos', 'linux']);

/** Drivers turn a screen and forget its orientation, or the other way round. Windows of phones are not always their screen. */
function orientationContradicts(facts: Facts): boolean {
  const { agent, signals } = facts;
  const { width, height, orientation, turns } = signals.screen ?? {};
  if (agent.mobile || !DESKTOPS.has(agent.os) || isAndroidDesktopMode(facts)) return false;
  if (turns === true) return true;
  if (width == null || height == null || width === height || !orientation) return false;
  return height > width ? orientation === 'landscape-primary' : orientation === 'portrait-primary';
}

/** Pointer Events section 4.1: 0.5 for a button that cannot tell. The agent leaves out presses that no device made. */
const isForceless = ({ signals }: Facts): boolean => signals.input?.forceless === true;

const setsPermissions = ({ signals: { tells } }: Facts): boolean =>
  (tells?.granted ?? 0) >= 2 && (tells?.barred ?? 0) >= 4;

const isActivated = ({ signals }: Facts): boolean => signals.tells?.activated === true;

export const DRIVEN_RULES: readonly Rule[] = [
  rule('A8', 'A', 0.8, inBlink(isForceless)),
  rule('A9', 'A', 0.8, inBlink(setsPermissions)),
  rule('T14', 'T', 0.3, inBlink(windowsOnGrid)),
  // Firefox with resistFingerprinting always says landscape, and iPads with a Mac's name turn.
  rule('T15', 'T', 0.3, inBlink(orientationContradicts), { fact: 'screen-size' }),
  rule('M12', 'M', 0.15, inBlink(isActivated)),
];
