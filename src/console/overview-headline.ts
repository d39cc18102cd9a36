import { DAY } from '../lib/clock.ts';
import { say } from './words.ts';

/** Chooses the headline of the overview: the first sentence that is true, the most urgent ones first. */

export interface HeadlineFacts {
  readonly now: number;
  /** False for an operator, who cannot open a case. */
  readonly mayRule: boolean;
  /** Open objections by the days left. More than `cap` is `cap` + 1. */
  readonly due: {
    readonly late: number;
    readonly two: number;
    readonly seven: number;
    readonly later: number;
  };
  readonly cap: number;
  readonly urgent: { readonly contestId: string; readonly filedAt: number } | null;
  /** Cases that this person holds, or whose ruling they can confirm. */
  readonly waiting: number;
  /** The first item that needs attention; null for none. */
  readonly attention: string | null;
  /** The share of automated visits in percent, now and in the period before; null for too few visits. */
  readonly automated: string | null;
  readonly before: string | null;
  readonly beforeText: string;
}

export interface Headline {
  readonly title: string;
  readonly lead: string | null;
  readonly act: { readonly href: string; readonly text: string; readonly isLate: boolean } | null;
}

const upTo = (n: number, cap: number): string =>
  n > cap ? say('more than {n}', { n: cap }) : say('{n}', { n });

function lateHeadline({ due, cap, urgent, now, mayRule }: HeadlineFacts): Headline {
  const days = urgent === null ? 0 : Math.floor((now - urgent.filedAt) / DAY);
  const age = say('The oldest has waited {n} days.', { n: days }, 'The oldest has waited 1 day.');
  const dueSoon = say('{n} more are due within 2 days.', { n: due.two }, '1 more is due within 2 days.');
  return {
    title: due.late === 1 ? '1 objection is overdue' : `${upTo(due.late, cap)} objections are overdue`,
    lead: due.two > 0 ? `${age} ${dueSoon}` : age,
    act: urgent && mayRule ? openCase(urgent.contestId, 'Open the oldest', true) : null,
  };
}

const openCase = (contestId: string, text: string, isLate = false) => ({
  href: `/console/contests/${contestId}`,
  text,
  isLate,
});

function soonHeadline({ due, cap, urgent, mayRule }: HeadlineFacts): Headline {
  const open = upTo(due.two + due.seven + due.later, cap);
  return {
    title:
      due.two === 1
        ? '1 objection is due within 2 days'
        : `${upTo(due.two, cap)} objections are due within 2 days`,
    lead: `None is overdue. ${open === '1' ? 'No other is open.' : `${open} are open.`}`,
    act: urgent && mayRule ? openCase(urgent.contestId, 'Open the next') : null,
  };
}

function calmHeadline({ automated, before, beforeText, due, cap }: HeadlineFacts): Headline {
  const open = due.seven + due.later;
  const cases =
    open === 0
      ? 'No objection is open.'
      : `${upTo(open, cap)} ${open === 1 ? 'objection is' : 'objections are'} open, none due within 2 days.`;
  if (automated === null)
    return { title: 'Nothing needs you now', lead: `${cases} There are too few visits to count.`, act: null };
  return {
    title: `${automated} % of visits were automated`,
    lead: before === null ? cases : `It was ${before} % in ${beforeText}. ${cases}`,
    act: { href: '/console/decisions?class=undeclared_automation', text: 'See the decisions', isLate: false },
  };
}

export function chooseHeadline(facts: HeadlineFacts): Headline {
  const { due, waiting, attention, mayRule } = facts;
  if (due.late > 0) return lateHeadline(facts);
  if (due.two > 0) return soonHeadline(facts);
  if (waiting > 0 && mayRule)
    return {
      title: waiting === 1 ? '1 objection waits for you' : say('{n} objections wait for you', { n: waiting }),
      lead: 'You hold it, or a colleague’s ruling needs your second look.',
      act: { href: '/console/queue?list=waiting', text: 'Open the list', isLate: false },
    };
  if (attention !== null)
    return {
      title: attention,
      lead: 'No objection is overdue or due within 2 days.',
      act: { href: '#attention', text: 'See what to do', isLate: false },
    };
  const { act, ...headline } = calmHeadline(facts);
  return { ...headline, act: mayRule ? act : null };
}
