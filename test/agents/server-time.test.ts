import { expect, it } from 'vitest';
import { verifyBotAuth } from '../../src/agents/verify.ts';
import { NOW } from '../support/make.ts';
import {
  AGENT_ORIGIN,
  HOST,
  makeAgent,
  makeDeps,
  makeRequest,
  NOW_SECONDS,
  quoted,
  signedHeaders,
} from './support/agent.ts';

/** What a stranger's headers may cost: nothing in them is verified yet. */

const AGENT = makeAgent();

type Headers = Readonly<Record<string, string>>;

const LABELS = ['a', 'b', 'c', 'd'];
const PARAMETERS = `;created=${NOW_SECONDS - 10};expires=${NOW_SECONDS + 60};keyid=${quoted(AGENT.thumbprint)};tag="web-bot-auth"`;
const keysOf = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `k${i}`);
const dictionary = (size: number): string =>
  `${keysOf(14)
    .map((key) => `${key}=1`)
    .join(',')},z=${'a'.repeat(size)}`;

/** Four signatures, each over so many members of one header. */
function covering(field: string, members: number): Headers {
  const components = [
    '"@authority"',
    '"signature-agent";key="a"',
    ...keysOf(members).map((key) => `"${field}";key="${key}"`),
  ];
  return {
    host: HOST,
    'signature-input': LABELS.map((label) => `${label}=(${components.join(' ')})${PARAMETERS}`).join(', '),
    signature: LABELS.map((label) => `${label}=:${'A'.repeat(86)}==:`).join(', '),
    'signature-agent': `a=${quoted(AGENT_ORIGIN)}`,
  };
}

const GOOD = signedHeaders(AGENT, {
  components: ['"@authority"', '"@query"', '"signature-agent";key="sig1"'],
});
const input = (change: (value: string) => string): Headers => ({
  ...GOOD,
  'signature-input': change(GOOD['signature-input'] ?? ''),
});

it.each<readonly [string, Headers]>([
  [
    'a long header by a name that begins with signature',
    { ...covering('signature-x', 3), 'signature-x': dictionary(11_000) },
  ],
  ['a long header taken apart 14 times', { ...covering('x', 14), x: dictionary(1900) }],
  [
    'a long Signature-Agent taken apart 15 times',
    { ...covering('signature-agent', 14), 'signature-agent': dictionary(4200) },
  ],
  ['the longest that is taken apart', { ...covering('x', 3), x: dictionary(1900) }],
  ['a label of 8 KB', input(() => 'a'.repeat(7900))],
  ['900 labels', input(() => Array.from({ length: 900 }, (_, i) => `a${i}=()`).join(','))],
  ['parameters without end', input((value) => value + ';a'.repeat(3500))],
  ['quotes without end', input((value) => `${value};x="${'\\"'.repeat(3500)}`)],
  ['parentheses without end', input(() => `a=${'('.repeat(7000)}`)],
  ['blanks without end', input(() => `a=(${' '.repeat(7000)}`)],
  ['a number without end', input((value) => `${value};x=${'1'.repeat(7000)}`)],
])('is not spent on %s', async (name, headers) => {
  let spent = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 5; i += 1) {
    const before = process.cpuUsage();
    expect(await verifyBotAuth(makeDeps([AGENT]), makeRequest(headers), NOW)).toBeNull();
    const { user, system } = process.cpuUsage(before);
    spent = Math.min(spent, (user + system) / 1000);
  }
  console.log(`${name}: ${spent.toFixed(1)} ms of CPU`);
});
