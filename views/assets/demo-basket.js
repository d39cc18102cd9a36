// The basket uses the verdict as a shop would: a program waits, a person or an undecided visit buys.
import { say, setText, show } from './demo-view.js';

const money = new Intl.NumberFormat(document.documentElement.lang, {
  style: 'currency',
  currency: 'EUR',
  maximumFractionDigits: 0,
});
const SENTENCES = { undeclared_automation: 'kept', unknown: 'boughtUnknown' };

let count = 0;
let sum = 0;

/** @param verdict the class that the shop's backend read; null: this visit was not checked */
export function buy({ buy: name, price }, verdict) {
  const isKept = verdict === 'undeclared_automation';
  if (!isKept) {
    count += 1;
    sum += Number(price);
  }
  setText('basket', say('basket', { count, sum: money.format(sum) }));
  setText('bought', say(verdict === null ? 'boughtUnchecked' : (SENTENCES[verdict] ?? 'bought'), { name }));
  show('basket', true);
}
