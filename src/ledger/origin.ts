/**
 * The origin line of a tenant's log: `<host of the base URL>/ledger/<kid>`, the port included when it is not the
 * scheme's own. Fixed when the tenant is made: a changed base URL must not rename a log that proofs already name.
 */
export function logOrigin(baseUrl: string, kid: string): string {
  return `${new URL(baseUrl).host}/ledger/${kid}`;
}
