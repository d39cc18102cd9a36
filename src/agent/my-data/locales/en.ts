/** The English texts of the page, in one place for translation. */
export const WORDS = {
  intro:
    'With your consent this site checks your device, to recognise it again and to tell people from programs. Here you can see what it holds about this browser, and have it erased. Many devices look alike. If yours does, its id may be shared, and only the one visit that is shown can be seen and erased here.',
  once: 'The button “Show me” checks your browser. That visit is kept as long as any other, unless you erase it here.',
  visit: 'This is the visit that the link brought here. Your browser was not checked again.',
  lookUpAlone:
    'Many devices share this id, so only this look-up is shown, and no earlier visit. The link that a site gives right after a visit shows that visit.',
  visitOver:
    'The visit that brought you here cannot be shown any more: that works for five minutes after it, in the same browser. Press Show me.',
  look: 'Show me',
  looking: 'Looking …',
  gpc: 'Your browser sends Global Privacy Control. The device check did not run, and this visit left nothing here.',
  away: 'The device check could not be reached. Nothing was changed. Try again in a moment.',
  noDetails: 'The server did not say what else it holds. Press Show me again in a moment.',
  refused: 'The device check gave no decision, so nothing was looked up.',
  unproven:
    'This site runs the check only with recorded consent, and this browser has none. Nothing was looked up.',
  clock: (duration: string, isFast: boolean) =>
    `Your clock is about ${duration} ${isFast ? 'fast' : 'slow'}. The device check used the server’s time instead.`,
  minutes: (count: number) => `${count} minute${count === 1 ? '' : 's'}`,
  hours: (count: number) => `${count} hours`,
  days: (count: number) => `${count} days`,
  nobody:
    'This browser shows too little to be recognised. There is only the decision just made, and it belongs to no device.',
  verdictTitle: 'The decision just made',
  request: 'Number of this decision, to quote in a question:',
  notDone:
    'Nothing was erased or filed: this page was open for more than five minutes, or its cookie is missing. Look it up again, then press the button once more. What you typed is kept.',
  lookAgain: 'Look it up again',
  typedKept: 'What you typed is back in the form.',
  unconfirmed: 'The server did not confirm this. Press the button again.',
  noToken:
    'The site has not registered the address of this page, so it can neither show details nor erase anything. Ask the site.',
  noCookie:
    'Your browser did not keep the cookie that this page needs to show details or erase anything. Allow cookies for this site, then press Show me again.',
  classes: {
    human: 'A person',
    declared_agent: 'A declared agent',
    undeclared_automation: 'An automated visit',
    unknown: 'Not decided',
  },
  consentsTitle: 'What this browser agreed to',
  noConsents: 'This browser has stored no choice for this address.',
  choices: {
    granted: (at: string, until: string) => `You agreed on ${at}. This ends on ${until}.`,
    denied: (at: string, until: string) => `You declined on ${at}. We may ask again after ${until}.`,
    withdrawn: (at: string, _until: string) => `You withdrew your consent on ${at}.`,
  },
  withdraw: 'Withdraw',
  receiptPage: 'Save a receipt to print',
  receiptFile: 'Save it for a program',
  withdrawn:
    'Withdrawn. No further visit is checked. Data of earlier visits is kept until its retention ends. What this page shows can be erased here.',
  notWithdrawn: 'The withdrawal could not be recorded. Press Withdraw again.',
} as const;
