import { type InForce, textIn } from './log-scan.ts';
import type { NamedText } from './proofs-service.ts';

/** `definitions/` and `gpc.json`: what the site said, and how it treated the signal. */

const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;

const describe = ({ seq, hash, from, until, body }: InForce): object => ({ seq, hash, from, until, body });

/** @param texts of the policies, by version */
export function definitionParts(
  definitions: readonly InForce[],
  texts: ReadonlyMap<number, string>,
): readonly NamedText[] {
  const of = (type: string): readonly InForce[] => definitions.filter((one) => one.type === type);
  const policies = of('policy.published');
  return [
    { name: 'definitions/purposes.json', text: json(of('purpose.defined').map(describe)) },
    { name: 'definitions/policies.json', text: json(policies.map(describe)) },
    ...policies.flatMap(({ body }) => {
      const text = texts.get(Number(body['version']));
      return text === undefined ? [] : [{ name: `definitions/policy-${textIn(body, 'version')}.txt`, text }];
    }),
  ];
}

/** Counts of choices, and what came of Global Privacy Control, gathered while the openings pass. */
export interface ChoiceTally {
  openings: number;
  readonly choices: Map<string, number>;
  /** The number of writes that came with the signal. */
  received: number;
  /** The number of writes with the signal that were recorded as a refusal or an opt-out. */
  honoured: number;
  /** The number of grants that the person gave over the signal, for a purpose whose policy is `ask`. */
  overruled: number;
  /** The first choices, for the page. */
  readonly shown: {
    readonly seq: number;
    readonly at: number;
    readonly choice: string;
    readonly purpose: string;
  }[];
}

export const emptyChoiceTally = (): ChoiceTally => ({
  openings: 0,
  choices: new Map(),
  received: 0,
  honoured: 0,
  overruled: 0,
  shown: [],
});

const SHOWN_CHOICES = 500;

export function addChoice(
  tally: ChoiceTally,
  one: {
    readonly seq: number;
    readonly at: number;
    readonly choice: string;
    readonly purpose: string;
    readonly detail: { readonly [name: string]: unknown };
  },
): void {
  const { seq, at, choice, purpose, detail } = one;
  tally.openings += 1;
  tally.choices.set(choice, (tally.choices.get(choice) ?? 0) + 1);
  if (tally.shown.length < SHOWN_CHOICES) tally.shown.push({ seq, at, choice, purpose });
  if (detail['gpc'] !== true) return;
  tally.received += 1;
  if (detail['overGpc'] === true) tally.overruled += 1;
  else if (choice !== 'granted') tally.honoured += 1;
}

/** @param mark the words that the banner shows under the signal */
export function gpcPart(tally: ChoiceTally, definitions: readonly InForce[], mark: string): NamedText {
  const policies = definitions
    .filter(({ type, body }) => type === 'purpose.defined' && body['removed'] !== true)
    .map(({ seq, from, until, body }) => ({ seq, purpose: body['id'], gpc: body['gpc'], from, until }));
  const banners = definitions.filter(({ type }) => type === 'banner.published').map(({ seq }) => seq);
  const { received, honoured, overruled } = tally;
  const shown = { text: mark, banners };
  return { name: 'gpc.json', text: json({ received, honoured, overruled, shown, policies }) };
}
