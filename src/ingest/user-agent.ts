/** The little that is read out of a user-agent string: never a version finer than the major. */

export type Engine = 'blink' | 'gecko' | 'webkit' | 'unknown';
export type OsFamily = 'windows' | 'macos' | 'ios' | 'android' | 'chromeos' | 'linux' | 'unknown';
export type Browser = 'chrome' | 'firefox' | 'safari' | 'other';

export interface AgentFacts {
  readonly engine: Engine;
  readonly browser: Browser;
  /** Major version of `browser`; 0 when it is not said. */
  readonly major: number;
  readonly os: OsFamily;
  readonly mobile: boolean;
}

const OS_PATTERNS: readonly (readonly [RegExp, OsFamily])[] = [
  [/\b(?:iPhone|iPad|iPod)\b/, 'ios'],
  [/\bAndroid\b/, 'android'],
  [/\bCrOS\b|\bChrom(?:e|ium) OS\b/, 'chromeos'],
  [/\bWindows\b|^Win(?:32|64)$/, 'windows'],
  [/\bMac(?:intosh|Intel|OS| OS X)?\b/i, 'macos'],
  [/\b(?:Linux|X11)\b/, 'linux'],
];

/** OS family of a user-agent string, of `navigator.platform` or of a client hint. */
export function osFamily(text: string | null | undefined): OsFamily {
  if (text == null) return 'unknown';
  return OS_PATTERNS.find(([pattern]) => pattern.test(text))?.[1] ?? 'unknown';
}

function major(text: string, product: RegExp): number {
  return Number(product.exec(text)?.[1] ?? 0);
}

/** Every browser on iOS is WebKit, whatever it is called. */
export function readAgent(userAgent: string | null | undefined): AgentFacts {
  const text = userAgent ?? '';
  const os = osFamily(text);
  const ios = os === 'ios';
  const mobile = ios || /\bMobile\b/.test(text);
  const chrome = major(text, /\b(?:Headless)?Chrome\/(\d{1,4})/);
  const firefox = major(text, /\bFirefox\/(\d{1,4})/);
  if (chrome > 0 && !ios) return { engine: 'blink', browser: 'chrome', major: chrome, os, mobile };
  if (firefox > 0 && !ios) return { engine: 'gecko', browser: 'firefox', major: firefox, os, mobile };
  if (ios || /AppleWebKit\//.test(text))
    return { engine: 'webkit', browser: 'safari', major: major(text, /Version\/(\d{1,4})/), os, mobile };
  return { engine: 'unknown', browser: 'other', major: 0, os, mobile };
}
