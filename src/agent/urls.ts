/** The address before `/v1/`: a proxy may serve gpd below a path. A copy that lies elsewhere names its origin alone. */
function serverOf(scriptUrl: string): string {
  const { origin, pathname } = new URL(scriptUrl);
  return origin + (/^(.*)\/v1\/[^/]*$/.exec(pathname)?.[1] ?? '');
}

/** The base address of the server, without a slash at its end. */
export function endpointOf(endpoint: string | undefined, scriptUrl: string | null): string {
  const base = endpoint ?? (scriptUrl === null ? location.origin : serverOf(scriptUrl));
  return new URL(base, location.href).href.replace(/\/+$/, '');
}

/**
 * A worker must come from the page's origin, otherwise no worker runs.
 * @param workerUrl from IdentifyOptions: null for no worker, undefined for the file next to the script
 */
export function workerUrlOf(workerUrl: string | null | undefined, scriptUrl: string | null): string | null {
  const base = workerUrl === undefined ? scriptUrl : location.href;
  if (workerUrl === null || base === null) return null;
  const url = new URL(workerUrl ?? 'agent-worker.js', base);
  return url.origin === location.origin ? url.href : null;
}

/** The passkey script is served from the same folder. */
export const passkeyUrlOf = (endpoint: string, scriptUrl: string | null): string =>
  new URL('agent-passkey.js', scriptUrl ?? `${endpoint}/v1/`).href;
