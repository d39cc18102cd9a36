/** What the page says; one place, for a translation. */
export const WORDS = {
  title: 'What this site’s device check holds about you',
  intro:
    'To recognise a browser again and to tell people from programs, this site checks the device of those who agreed to it. Here you see what it holds about this browser, and you can have it erased.',
  once: 'To look it up, the check runs once more, now. Pressing the button agrees to that, and to nothing else.',
  look: 'Show me',
  forget: 'Forget this device',
  looking: 'Looking …',
  gpc: 'Your browser sends Global Privacy Control. The device check did not run, and this visit left nothing here.',
  away: 'The device check cannot be reached. Nothing was changed; try again in a moment.',
  noDetails: 'The server did not answer what it holds beyond this verdict. Press Show me again in a moment.',
  refused: 'The device check did not answer for this page, so nothing was looked up.',
  unproven:
    'The site runs the check on recorded consent only, and this browser has none. Nothing was looked up.',
  clock: (duration: string, isFast: boolean) =>
    `Your clock is about ${duration} ${isFast ? 'fast' : 'slow'}. The device check used the server’s time instead.`,
  minutes: (count: number) => `${count} minute${count === 1 ? '' : 's'}`,
  hours: (count: number) => `${count} hours`,
  days: (count: number) => `${count} days`,
  nobody:
    'This browser tells too little to be recognised. The verdict of this moment is all there is, and it belongs to no device.',
  verdictTitle: 'The verdict',
  signalsTitle: 'What tells this device apart',
  none: 'No details of signals are kept here: only the verdict, and a keyed hash by which the device is recognised.',
  bands:
    'Too few devices are known here to say how rare yours is. This is what studies of many browsers found for such signals.',
  bits: (total: number) =>
    `Together they narrow it down to about 1 of ${Math.round(2 ** total).toLocaleString()} visits.`,
  handle: 'Handle of this device, for you to compare',
  request: 'Number of this verdict, to quote in a contest or a question',
  gone: 'Forgotten: the verdicts and the hash of this device were erased. An open contest and a review in your favour stay.',
  notGone:
    'Nothing was erased: this page was open too long, or its cookie is missing. Press Show me again first.',
  unconfirmed: 'The server did not confirm that it erased anything. Press Forget this device again.',
  noToken:
    'The site did not register the address of this page, so the page can neither show details nor erase anything. Ask the site.',
  noCookie:
    'Your browser did not keep the cookie that this page needs, so the page can neither show details nor erase anything. Allow cookies for this site and press Show me again.',
  classes: {
    human: 'A person',
    declared_agent: 'A declared agent',
    undeclared_automation: 'A program that did not declare itself',
    unknown: 'Not decided',
  },
  again: 'Seen before',
  first: 'Seen for the first time',
  contest:
    'You can contest it: a person will look at it within a month. Ask the site, and quote the number above.',
  score: 'Suspicion',
  signal: 'Signal',
  gives: 'Gives away',
  bandWords: {
    common: 'little: common',
    uncommon: 'some: uncommon',
    rare: 'much: rare',
    'not enough data': 'not enough data',
  },
  bitsOf: (bits: number) => `${bits.toFixed(1)} bits`,
  names: {
    architecture: 'Processor family',
    audio: 'How sound is computed',
    bitness: 'Processor width',
    canvas: 'How graphics are drawn',
    colorDepth: 'Colours of the screen',
    cores: 'Processor cores',
    errorMessage: 'Wording of errors',
    evalLength: 'Length of built-in code',
    family: 'Browser engine and system',
    fonts: 'Installed fonts',
    gamut: 'Colour range',
    gpu: 'Graphics chip',
    hdr: 'High dynamic range',
    math: 'How numbers are rounded',
    memory: 'Memory, in steps',
    model: 'Device model',
    screen: 'Screen size',
    touch: 'Touch points',
  } as Readonly<Record<string, string>>,
} as const;
