import type { AgentStatus } from '../schema/agents.ts';

/**
 * The outcomes of judging a signature (contract-2 section 17). `invalid` needs a key that gpd has; without
 * one a signature is `unverified`. Backend and operator can read the reason, the agent cannot.
 */

/** Each cause has one code; `docs/errors.md` is generated from this table. */
export const AGENT_REASONS = {
  'headers-too-long': ['unverified', 'The three headers of the signature together are longer than 8 KB.'],
  'signature-input-missing': ['unverified', 'A `Signature-Agent` came without `Signature-Input`.'],
  'signature-input-malformed': ['unverified', '`Signature-Input` is not a dictionary of inner lists.'],
  'signature-missing': ['unverified', 'The header `Signature` is missing.'],
  'signature-agent-missing': ['unverified', 'The signature names no agent: `Signature-Agent` is missing.'],
  'signature-agent-malformed': ['unverified', '`Signature-Agent` is neither a dictionary nor a string.'],
  'signature-agent-no-member': [
    'unverified',
    'No member of `Signature-Agent` has the label of the signature.',
  ],
  'signature-agent-not-covered': [
    'unverified',
    'The signature does not cover its own member of `Signature-Agent`.',
  ],
  'signature-agent-parameters': [
    'unverified',
    'The member has parameters, such as `type`; draft -01 ignores it.',
  ],
  'signature-agent-no-url': ['unverified', 'The member is not the https URL of a key set.'],
  'tag-not-accepted': ['unverified', 'No signature has a tag of `GPD_WBA_TAGS`, as a string.'],
  'algorithm-not-supported': ['unverified', '`alg` is not `ed25519`.'],
  'component-not-supported': [
    'unverified',
    'It covers `@query-param`, an unknown component, or one with `sf`, `bs`, `tr` or `req`.',
  ],
  'too-many-components': ['unverified', 'It covers more than 16 components, or more than 6 with `key`.'],
  'keyid-missing': ['unverified', 'It has no `keyid`, the thumbprint of its key.'],
  'digest-not-supported': ['unverified', 'The covered `Content-Digest` has neither `sha-256` nor `sha-512`.'],
  'key-set-unknown': ['unverified', 'The key set is not known here: `gpd agents add URL`.'],
  'key-unknown': ['unverified', 'The key set is known and has no key with this thumbprint.'],
  'key-not-in-force': ['invalid', 'The key is before its `nbf` or past its `exp`.'],
  'created-missing': ['invalid', 'It has no `created`.'],
  'created-in-future': ['invalid', '`created` is more than 30 seconds ahead of this server.'],
  'expires-missing': ['invalid', 'It has no `expires`.'],
  'expires-before-created': ['invalid', '`expires` is before `created`.'],
  'valid-too-long': ['invalid', 'It is valid for more than 24 hours.'],
  expired: ['invalid', '`expires` is past.'],
  'host-not-covered': [
    'invalid',
    'It covers neither `@authority` nor `@target-uri`, so it would hold anywhere.',
  ],
  'wrong-host': ['invalid', 'The request came for a host that is not one of this site.'],
  'labels-differ': [
    'invalid',
    '`Signature` and `Signature-Input` have different labels, or one label twice.',
  ],
  'signature-malformed': [
    'invalid',
    'A parameter, a component or the signature is malformed, or comes twice.',
  ],
  'component-missing': [
    'invalid',
    'A covered header or member is not in the request; a proxy may remove it.',
  ],
  'component-unreadable': ['invalid', 'A covered header is longer than 2,048 characters, or has odd bytes.'],
  'component-repeated': ['invalid', 'It covers one component twice.'],
  'empty-path': [
    'invalid',
    'The agent signed an empty `@path` for `/`. RFC 9421 section 2.2.6 wants `/`: tell its operator.',
  ],
  'signature-mismatch': [
    'invalid',
    'The bytes do not verify: something covered was changed, or another key signed.',
  ],
  'digest-mismatch': ['invalid', 'The covered `Content-Digest` is not the digest of the body.'],
  replayed: ['invalid', 'The nonce was used before.'],
} as const satisfies Readonly<Record<string, readonly [AgentStatus, string]>>;

export type AgentReason = keyof typeof AGENT_REASONS;

/** The result of judging a request, with the agent that signed it. */
export interface AgentOutcome {
  readonly status: AgentStatus;
  /** The identity of the agent; null unless it is verified. */
  readonly agent: string | null;
  /** The identity that a signature names whose key gpd has; what is invalid only claims it. */
  readonly named: string | null;
  /** The signature names these two; they count only if it is verified. */
  readonly keyid: string | null;
  readonly tag: string | null;
  /** In seconds, as the signature says. */
  readonly expires: number | null;
  /** Null if verified or none. */
  readonly reason: AgentReason | null;
}

export const UNSIGNED: AgentOutcome = {
  status: 'none',
  agent: null,
  named: null,
  keyid: null,
  tag: null,
  expires: null,
  reason: null,
};

/** The tags by which agents say what they came for; null for any other. */
const INTENTS: Readonly<Record<string, 'browse' | 'pay'>> = {
  'agent-browser-auth': 'browse',
  'agent-payer-auth': 'pay',
};

/** The purpose of a verified agent, where its tag says one. */
export function intentOf({ status, tag }: AgentOutcome): 'browse' | 'pay' | null {
  return status === 'verified' && tag !== null ? (INTENTS[tag] ?? null) : null;
}
