import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { readTagged } from '../agents/claim.ts';
import { type AgentKey, importAgentKey, readJwks, validityOf } from '../agents/directory.ts';
import { requestAt, withoutDefaultPort } from '../agents/host.ts';
import { AGENT_REASONS, type AgentOutcome, type AgentReason } from '../agents/reasons.ts';
import { type BotAuthDeps, judgeOne, MAX_VALIDITY_SECONDS, signatureBase } from '../agents/verify.ts';
import { SECOND } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';
import { type AgentRequest, agentRequestSchema } from '../schema/agents.ts';

/** Explains the signatures of a request to those who build the agent that signs it. */

interface ExplainedSignature {
  readonly label: string;
  readonly outcome: AgentOutcome;
  readonly text: string;
  /** Null if a covered component cannot be had. */
  readonly base: string | null;
}

export interface Explanation {
  /** Why there is no signature to explain; null if there is one. */
  readonly text: string | null;
  readonly reason: AgentReason | null;
  readonly signatures: readonly ExplainedSignature[];
}

/** The keys of a JWK Set, or null if none can be used. */
export async function readKeySet(text: string): Promise<readonly AgentKey[] | null> {
  const keys = await readJwks(tryOr(() => JSON.parse(text) as unknown, null));
  return keys?.length ? keys : null;
}

/** @param keys those of the agent, whatever URL it names; null: no key set was given */
const findIn =
  (keys: readonly AgentKey[] | null): BotAuthDeps['findKey'] =>
  (_url, thumbprint, now) => {
    const key = keys?.find((one) => one.thumbprint === thumbprint);
    if (!key) return keys ? 'key-unknown' : 'key-set-unknown';
    const { nbf, exp } = validityOf(key);
    return nbf <= now && now < exp ? importAgentKey(key) : 'key-not-in-force';
  };

/** Judges each signature alone, as the door does. A nonce may be used again here. */
export async function explainRequest(
  described: AgentRequest,
  keys: readonly AgentKey[] | null,
  tags: readonly string[],
  now: number,
): Promise<Explanation> {
  const { host, ...parts } = requestAt(described);
  const name = withoutDefaultPort(host, parts.https);
  const request = { ...parts, headers: { ...parts.headers, host: name }, bundle: '' };
  const tagged = readTagged(request.headers, tags);
  if (tagged === null)
    return {
      text: `The request has no signature with the tag ${tags.join(' or ')}.`,
      reason: null,
      signatures: [],
    };
  if (typeof tagged === 'string') return { text: AGENT_REASONS[tagged][1], reason: tagged, signatures: [] };
  const policy = { authorities: () => [name], tags, maxValiditySeconds: MAX_VALIDITY_SECONDS };
  const deps = { policy, findKey: findIn(keys), claimNonce: () => Promise.resolve(true) };
  const signatures: ExplainedSignature[] = [];
  for (const signature of tagged) {
    const outcome = await judgeOne(deps, request, signature, Math.floor(now / SECOND));
    const { agent, reason } = outcome;
    const text = reason === null ? `It verifies. The agent is ${agent}.` : AGENT_REASONS[reason][1];
    const base = signatureBase(policy, request, signature);
    signatures.push({ label: signature.label, outcome, text, base });
  }
  return { text: null, reason: null, signatures };
}

/** The explanation as an agent gets it that asked with its own request. */
export function explanationText({ text, reason, signatures }: Explanation): string {
  if (text !== null) return `${text}${reason === null ? '' : ` (${reason})`}\n`;
  return signatures
    .map(({ label, outcome, text: words, base }) => {
      const code = outcome.reason === null ? '' : ` (${outcome.reason})`;
      const lines = base === null ? 'No signature base: a covered component cannot be had.' : base;
      return `${label}: ${outcome.status}. ${words}${code}\n\nSignature base:\n${lines}\n`;
    })
    .join('\n');
}

/** Reads `METHOD URL` and a header in each line after it, up to an empty line. Null: it is no such text. */
export function parseRequest(text: string): AgentRequest | null {
  const [first = '', ...rest] = text.trim().split(/\r?\n/);
  const end = rest.findIndex((line) => line.trim() === '');
  const headers = new Map<string, string[]>();
  for (const line of end === -1 ? rest : rest.slice(0, end)) {
    const [name = '', ...value] = line.split(':');
    if (!/^[\w-]{1,64}$/.test(name) || value.length === 0) return null;
    const lower = name.toLowerCase();
    headers.set(lower, [...(headers.get(lower) ?? []), value.join(':').trim()]);
  }
  const [method, target = ''] = first.split(' ');
  const url = target.startsWith('/') ? `https://${headers.get('host')?.[0] ?? ''}${target}` : target;
  return agentRequestSchema.safeParse({ method, url, headers: Object.fromEntries(headers) }).data ?? null;
}

/** A request that verifies, with a key that nobody keeps. */
export function signExample(now: number): { readonly request: string; readonly keys: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { kty = '', crv = '', x = '' } = publicKey.export({ format: 'jwk' });
  const keyid = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url');
  const created = Math.floor(now / SECOND);
  const agent = '"https://agent.example"';
  const times = `created=${created};expires=${created + 3600}`;
  const input = `("@authority" "signature-agent";key="sig1");${times};keyid="${keyid}";tag="web-bot-auth"`;
  const base = `"@authority": shop.example\n"signature-agent";key="sig1": ${agent}\n"@signature-params": ${input}`;
  const signature = sign(null, Buffer.from(base), privateKey).toString('base64');
  const lines = ['GET https://shop.example/lamps', `Signature-Agent: sig1=${agent}`];
  return {
    request: [...lines, `Signature-Input: sig1=${input}`, `Signature: sig1=:${signature}:`].join('\n'),
    keys: JSON.stringify({ keys: [{ kty, crv, x }] }, null, 2),
  };
}
