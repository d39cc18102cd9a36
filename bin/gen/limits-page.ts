import { LIMITS } from '../../src/schema/limits.ts';
import type { LimitName } from '../../src/schema/route.ts';
import { ALL_ROUTES } from '../../src/schema/routes.ts';
import { environmentName } from '../../src/schema/settings.ts';

/** Generates docs/limits.md from the table of routes, which the server reads too. */

const HEAD = `For operators and integrators: which limit counts a request, and which setting changes it. Past a limit the answer is 429
\`rate-limited\`; wait for \`Retry-After\` seconds. A client is an IPv4 address or an IPv6 /64, found behind \`GPD_TRUSTED_PROXIES\`. If many
people share an address, raise the limits that count clients. [Settings](settings.md) has the defaults.`;

const FOOT = `Preflights (\`OPTIONS\`) are not counted. A POST of more than 32 KB is 413 before its body is read. Exports run one at a time per client and
two per tenant, looks at \`/my-data\` one per client and eight per tenant; the open log one at a time per client.

## Connections

A client may hold \`GPD_MAX_CONNECTIONS\`; a further one is closed without an answer. So is a connection with more than 16 requests that wait
for an answer, and one whose client does not read its answer within \`GPD_ANSWER_TIMEOUT\`. Proxies in \`GPD_TRUSTED_PROXIES\` hold the
connections of many clients and have no limit. Raise \`GPD_MAX_CONNECTIONS\` for a backend that opens more at once.

Of one client's requests without a credential 100 may be under way; a further one is 429 at once.`;

export function limitsPage(note: string): string {
  const names = Object.keys(LIMITS) as LimitName[];
  const limits = names.map((name) => {
    const { settings, text } = LIMITS[name];
    const named = settings.map((setting) => `\`${environmentName(setting)}\``).join(', ');
    return `| \`${name}\` | ${text} | ${named === '' ? '–' : named} |`;
  });
  const documented = ALL_ROUTES.filter(({ undocumented }) => undocumented !== true);
  const routes = names.map((name) => {
    const counted = documented.filter(({ limit }) => limit === name);
    return `| \`${name}\` | ${counted.map(({ method, path }) => `\`${method.toUpperCase()} ${path}\``).join(', ')} |`;
  });
  const rest = [
    '| `public`, then `GPD_RATE_LOGIN` per client | `/console/login`, `/console/callback`, `/console/join`, `/console/passkey` |',
    '| `public` | other pages of `/console`, `/assets/*`, an unknown path, an unknown method |',
  ];
  return [
    '# Limits',
    '',
    HEAD,
    '',
    '| limit | what it counts | settings |',
    '|---|---|---|',
    ...limits,
    '',
    '## Routes',
    '',
    '| limit | routes |',
    '|---|---|',
    ...routes,
    ...rest,
    '',
    FOOT,
    '',
    note,
    '',
  ].join('\n');
}
