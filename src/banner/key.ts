/** The page's key, and a line in its console where it cannot work. No line repeats a key. */

const PUBLISHABLE = /^gpd_pk_[\w-]{43}$/;

/** @returns null where the key may be sent: one of another scope never is, since anyone can read it in the page */
export function keyProblem(key: string): 'no-key' | 'secret-key' | 'invalid-key' | null {
  if (PUBLISHABLE.test(key)) return null;
  if (key === '') return 'no-key';
  return /^gpd_(?!pk_)/.test(key) ? 'secret-key' : 'invalid-key';
}

const LINES: Readonly<Record<string, string>> = {
  'no-key': 'its script names no key. Add data-key, or ?key= to the script’s address',
  'secret-key': 'its key is a secret one, which anyone can read here. Revoke it, and use a publishable key',
  'invalid-key': 'its key is not a publishable key (gpd_pk_ and 43 characters)',
  'insecure-context': 'this page is neither https nor localhost',
  unauthenticated: 'its key is not known here, or was revoked',
};

export function say(line: string): void {
  // biome-ignore lint/suspicious/noConsole: the developer of a page looks there
  console.error(`gpd: no consent banner: ${line}.`);
}

/** @param origin the page's own */
export function sayProblem(problem: string, origin: string): void {
  const away = `gpd is away or blocked, or ${origin} is not one of the tenant’s origins`;
  const reason = LINES[problem] ?? (problem === 'unreachable' ? away : 'gpd refused to say what to ask');
  say(`${reason} (${problem})`);
}
