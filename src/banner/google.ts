import { guarded } from './guarded.ts';

/** Google Consent Mode v2, for a page that asks for it: `data-google-consent="analytics_storage=analytics …"`. */

/** Google's tag reads `arguments` objects and passes over arrays. */
function push(..._command: ['consent', 'default' | 'update', Record<string, string | number>]): void {
  const page = window as { dataLayer?: unknown[] };
  page.dataLayer = page.dataLayer ?? [];
  // biome-ignore lint/complexity/noArguments: it is the format
  page.dataLayer.push(arguments);
}

const WAIT_MS = 500;

/** Says `denied` at once, whatever happens afterwards. @returns what says the rest; null when nothing is asked for */
export function createGoogle(attribute: string | null): ((granted: ReadonlySet<string>) => void) | null {
  const pairs = (attribute ?? '').split(/[\s,;]+/).flatMap((pair): [string, string][] => {
    const [signal, purpose] = pair.split('=');
    return signal && purpose ? [[signal, purpose]] : [];
  });
  if (pairs.length === 0) return null;
  const states = (granted: ReadonlySet<string>): Record<string, string> =>
    Object.fromEntries(
      pairs.map(([signal, purpose]) => [signal, granted.has(purpose) ? 'granted' : 'denied']),
    );
  guarded(() => push('consent', 'default', { ...states(new Set()), wait_for_update: WAIT_MS }));
  return (granted) => push('consent', 'update', states(granted));
}
