import type { ContestOutcome } from '../schema/rights.ts';

/** Objections of the weeks before the demo: some overdue, some due soon, some answered. */

export interface PastRuling {
  /** Days after the objection. */
  readonly after: number;
  readonly outcome: ContestOutcome;
  /** One of each reviewer. */
  readonly reasons: readonly [string, string];
}

export interface PastCase {
  /** Any text: another text makes another device. */
  readonly device: string;
  /** Days before the demo. */
  readonly days: number;
  readonly statement: string;
  readonly ruling?: PastRuling;
}

const AID: PastRuling['reasons'] = [
  'A screen reader drives this browser for its user. Nothing else spoke against a person.',
  'I agree: the order was paid, delivered and not returned. A person was there.',
];
const TEST: PastRuling['reasons'] = [
  'The person works with a remote-controlled browser and answered our question in their own words.',
  'The answer fits the order. I see no sign of a scraper in the other visits.',
];
const SCRAPER: PastRuling['reasons'] = [
  'The same browser read every product page at night, four times a second, for an hour.',
  'I looked at the log of that night too. No person reads four pages a second.',
];

export const PAST_CASES: readonly PastCase[] = [
  {
    device: 'case-1',
    days: 35,
    statement: 'Your page called me a robot and did not let me pay. I only bought a lamp.',
  },
  {
    device: 'case-2',
    days: 33,
    statement: 'My hand does not move a mouse well, so I use switches. I am no program.',
  },
  { device: 'case-3', days: 32, statement: 'The kiosk in our library was refused. Ten people a day use it.' },
  {
    device: 'case-4',
    days: 31,
    statement: 'I fill in every form by voice. Please look at it again.',
    ruling: { after: 6, outcome: 'overturned', reasons: AID },
  },
  {
    device: 'case-5',
    days: 29,
    statement: 'I had the developer tools open because I am one. I still wanted the chair.',
  },
  {
    device: 'case-6',
    days: 27,
    statement: 'I compare prices for my family. That cannot be forbidden.',
    ruling: { after: 8, outcome: 'upheld', reasons: SCRAPER },
  },
  {
    device: 'case-7',
    days: 26,
    statement: 'Your page says automated visit. I sat in front of it the whole evening.',
  },
  {
    device: 'case-8',
    days: 23,
    statement: 'At work our browsers are controlled by a tool of the IT department.',
    ruling: { after: 4, outcome: 'overturned', reasons: TEST },
  },
  { device: 'case-9', days: 21, statement: 'I use a text browser with a helper that clicks for me.' },
  {
    device: 'case-10',
    days: 19,
    statement: 'I only looked at all of your lamps. There are many.',
    ruling: { after: 7, outcome: 'upheld', reasons: SCRAPER },
  },
  {
    device: 'case-11',
    days: 14,
    statement: 'My screen magnifier changes the size of the window all the time.',
  },
  {
    device: 'case-12',
    days: 12,
    statement: 'My daughter set up an assistant that fills the basket for me. I paid myself.',
    ruling: { after: 5, outcome: 'overturned', reasons: TEST },
  },
  {
    device: 'case-13',
    days: 8,
    statement: 'Since the update of my screen reader your shop does not let me order.',
  },
  {
    device: 'case-14',
    days: 3,
    statement: 'I fill in forms with a screen reader and never touch the mouse.',
  },
  {
    device: 'case-15',
    days: 1,
    statement: 'My browser is remote-controlled by my employer’s test tool. I did shop.',
  },
];
