/** What the page says; one place, for a translation. */
export const WORDS = {
  intro:
    'To recognise a browser again and to tell people from programs, this site checks the device of those who agreed to it. Here you see what it holds about this browser, and you can have it erased.',
  once: 'To look it up, the check runs once more, now. Pressing the button agrees to that, and to nothing else.',
  look: 'Show me',
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
  verdictTitle: 'The decision of this moment',
  request: 'Number of this decision, to quote in a question:',
  notDone:
    'Nothing was erased or filed: this page was open too long, or its cookie is missing. Press Show me again first.',
  unconfirmed: 'The server did not confirm it. Press the button again.',
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
  consentsTitle: 'What this browser agreed to',
  noConsents: 'No choice of this browser is stored at this address.',
  choices: {
    granted: (at: string, until: string) => `You agreed on ${at}. This ends on ${until}.`,
    denied: (at: string, until: string) => `You declined on ${at}. You may be asked again after ${until}.`,
    withdrawn: (at: string, _until: string) => `You withdrew your consent on ${at}.`,
  },
  withdraw: 'Withdraw',
  withdrawn:
    'Withdrawn: no further visit is checked. What earlier visits left stays until its time is over, or until you erase it here.',
  notWithdrawn: 'The withdrawal could not be recorded. Press Withdraw again.',
} as const;
