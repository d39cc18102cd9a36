import type { Json } from '../lib/json.ts';

/** Says which acts switch a safeguard off or give access: gpd writes of them to `notify.email`. */

type Detail = Readonly<Record<string, Json>>;

/** True if the change of a setting makes the tenant less safe. */
const WEAKER: Readonly<Record<string, (from: Json | undefined, to: Json | undefined) => boolean>> = {
  'review.fourEyes': (_from, to) => to === false,
  'retention.days': (from, to) => Number(to) > Number(from),
  'consent.basis': (_from, to) => to !== 'ledger',
  'notify.email': () => true,
};

/** Acts that always do; `tenant.set` does for some settings. */
export const WEAKENING_ACTIONS: readonly string[] = [
  'hold.released',
  'apikey.created',
  'apikey.revoked',
  'webhook.added',
  'webhook.removed',
];

/** @param action one of the audit log */
export function weakensSafeguard(action: string, { key, from, to }: Detail): boolean {
  if (action !== 'tenant.set') return WEAKENING_ACTIONS.includes(action);
  return typeof key === 'string' && WEAKER[key]?.(from, to) === true;
}
