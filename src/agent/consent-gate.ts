import type { ConsentReceipt, Refused } from './types.ts';

/** The only purpose under which the server identifies devices (interface section 1). */
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
 * The consent gate: nothing is collected or sent before it. A missing or malformed receipt is refused like
 * one without the purpose.
 * @param receipt the grant as the page reports it
 * @param gpc the Global Privacy Control of this browser
 */
export function passConsentGate(receipt: unknown, gpc: boolean): ConsentReceipt | Refused {
  const valid = isReceipt(receipt) ? receipt : null;
  // The server looks up a yes over GPC in the ledger. It would refuse one without a proof.
  const isOverGpc = valid?.overGpc === true && valid.proof && valid.principalId;
  if ((gpc || valid?.gpc) && !isOverGpc) return refused('gpc');
  return valid?.purposes.includes(PURPOSE) ? valid : refused('consent-missing');
}

export function isRefused(outcome: ConsentReceipt | Refused): outcome is Refused {
  return 'sent' in outcome;
}
