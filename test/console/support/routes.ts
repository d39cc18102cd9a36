/** Every path of the console with its methods. `forms.test.ts` compares it with the source. */
export const ROUTES: Readonly<Record<string, string>> = {
  '/': 'GET, HEAD',
  '/login': 'GET, HEAD',
  '/callback': 'GET, HEAD',
  '/join': 'GET, HEAD',
  '/passkey': 'POST',
  '/logout': 'POST',
  '/signed-out': 'GET, HEAD',
  '/help': 'GET, HEAD',
  '/sessions': 'GET, HEAD',
  '/sessions/revoke': 'POST',
  '/queue': 'GET, HEAD',
  '/contests/:id': 'GET, HEAD',
  '/contests/:id/claim': 'POST',
  '/contests/:id/release': 'POST',
  '/contests/:id/ask': 'POST',
  '/contests/:id/extend': 'POST',
  '/contests/:id/resolve': 'POST',
  '/contests/:id/template': 'POST',
  '/subjects': 'GET, HEAD, POST',
  '/subjects/plan': 'POST',
  '/subjects/erase': 'POST',
  '/subjects/export': 'POST',
  '/subjects/hold': 'POST',
  '/holds': 'GET, HEAD',
  '/holds/release': 'POST',
  '/receipts': 'GET, HEAD',
  '/receipts/:id': 'GET, HEAD',
  '/register': 'GET, HEAD',
  '/register.csv': 'GET, HEAD',
  '/decisions': 'GET, HEAD',
  '/decisions/:id': 'GET, HEAD',
  '/evidence': 'GET, HEAD, POST',
  '/audit': 'GET, HEAD',
  '/audit/export': 'POST',
  '/overview': 'GET, HEAD',
  '/ledger': 'GET, HEAD',
  '/ledger/verify': 'POST',
  '/keys': 'GET, HEAD',
  '/terms': 'GET, HEAD',
  '/banner': 'GET, HEAD',
  '/banner/preview.js': 'GET, HEAD',
  '/banner/preview.css': 'GET, HEAD',
};

/** The paths of the forms about one contest, which need a session. */
export function formsOf(contestId: string): readonly string[] {
  return Object.entries(ROUTES)
    .filter(([path, methods]) => methods.includes('POST') && path !== '/passkey')
    .map(([path]) => `/console${path.replace(':id', contestId)}`);
}
