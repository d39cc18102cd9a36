import type { ConsentReceipt, Refused } from './types.ts';

/** The one purpose that the server identifies under (interface section 1). */
export const PURPOSE = 'device-identification';

const MESSAGES = {
  gpc: 'Global Privacy Control is on: nothing was collected and nothing was sent.',
  'consent-missing': `The purpose "${PURPOSE}" was not granted: nothing was collected and nothing was sent.`,
} as const;

function refused(reason: Refused['reason']): Refused {
  return { sent: false, reason, message: MESSAGES[reason] };
}

const isInteger = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

function isReceipt(value: unknown): value is ConsentReceipt {
  if (typeof value !== 'object' || value === null) return false;
  const { purposes, gpc, version, issuedAt } = value as Record<keyof ConsentReceipt, unknown>;
  return (
    Array.isArray(purposes) &&
    purposes.every((purpose) => typeof purpose === 'string') &&
    typeof gpc === 'boolean' &&
    isInteger(version) &&
    isInteger(issuedAt)
  );
}

/**
 * The gate that everything else stands behind. A receipt that is missing or misshapen refuses like one that lacks
 * the purpose: fail closed.
 * @param receipt what the page says was granted
 * @param gpc the browser's own signal
 */
export function passConsentGate(receipt: unknown, gpc: boolean): ConsentReceipt | Refused {
  const whole = isReceipt(receipt) ? receipt : null;
  // The server checks a yes over the signal in the ledger: without a proof it would only refuse it.
  const over = whole?.overGpc === true && whole.proof && whole.principalId;
  if ((gpc || whole?.gpc) && !over) return refused('gpc');
  return whole?.purposes.includes(PURPOSE) ? whole : refused('consent-missing');
}

export function isRefused(outcome: ConsentReceipt | Refused): outcome is Refused {
  return 'sent' in outcome;
}
