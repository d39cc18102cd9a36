import { z } from 'zod';
import { parseUrl } from '../lib/text.ts';
import type { Answer } from './answer.ts';
import { requestIdSchema } from './responses.ts';
import { contestIdSchema, textSchema } from './rights.ts';

/** The policy for agents, and the bodies of the routes of the door (contract-2 section 17). */

export const AGENT_STATUSES = ['verified', 'invalid', 'unverified', 'none'] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

export const AGENT_ACTIONS = ['allow', 'observe', 'deny', 'require', 'rate'] as const;
export type AgentAction = (typeof AGENT_ACTIONS)[number];

/** A key set's URL; `matchesAgent` compares it as it names agents. */
const isAgent = (text: string): boolean => {
  const url = parseUrl(text);
  return text === '*' || (url?.protocol === 'https:' && url.username + url.password === '');
};

const ruleSchema = z
  .strictObject({
    agent: z.string().max(512).refine(isAgent, 'write * or the https URL of a key set, or its origin'),
    status: z.enum(AGENT_STATUSES).optional(),
    path: z
      .string()
      .max(512)
      .regex(/^\/[^?#]*$/, 'write a path that begins with /, without a query'),
    action: z.enum(AGENT_ACTIONS),
    rate: z
      .string()
      .regex(/^[1-9]\d{0,8}\/[1-9]\d{0,5}$/, 'write COUNT/SECONDS, for instance 60/60')
      .optional(),
  })
  .superRefine(({ action, rate }, context) => {
    const path = ['rate'];
    if (action === 'rate' && rate === undefined)
      context.addIssue({ code: 'custom', path, message: 'the action rate needs COUNT/SECONDS' });
    if (action !== 'rate' && rate !== undefined)
      context.addIssue({ code: 'custom', path, message: 'only the action rate has one' });
  });
export type AgentRule = z.output<typeof ruleSchema>;

/** The rows are read from top to bottom, and the first that matches decides. */
export const agentPolicySchema = z.array(ruleSchema, 'write a JSON list of rules').max(200);
export type AgentPolicy = readonly AgentRule[];

const headerValue = z.union([z.string(), z.array(z.string())]);

export const agentRequestSchema = z.strictObject({
  method: z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/, 'a method, such as GET'),
  url: z
    .string()
    .max(8192)
    .regex(/^https?:\/\/[^/?#@\s]+(?:[/?][^#\s]*)?$/i, 'the absolute http or https URL of the request'),
  headers: z.record(z.string(), headerValue),
  body: z.base64('the body in base64').optional(),
});
export type AgentRequest = z.output<typeof agentRequestSchema>;

/** A line of a recorded day; a proxy's log is converted to it. `answered`: the status or the action. */
export const recordedRequestSchema = agentRequestSchema.extend({
  at: z.union(
    [z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)), z.number().int().min(0)],
    'a time, as 2026-11-28T12:00:00Z or in milliseconds',
  ),
  answered: z.union([z.int().min(100).max(599), z.enum(AGENT_ACTIONS)], 'a status or an action').optional(),
});
export type RecordedRequest = z.output<typeof recordedRequestSchema>;

export const agentAnswerSchema = z.object({
  status: z.enum(AGENT_STATUSES),
  agent: z.string().nullable(),
  keyid: z.string().nullable(),
  tag: z.string().nullable(),
  intent: z.enum(['browse', 'pay']).nullable(),
  /** In seconds, as the signature has it. */
  expires: z.number().nullable(),
  reason: z.string().nullable(),
});
export type AgentAnswer = Answer<typeof agentAnswerSchema>;

export const agentReviewSchema = z.strictObject({
  case: requestIdSchema,
  statement: textSchema,
  email: z.email().max(254).optional(),
});

export const agentCaseSchema = z.object({
  contestId: contestIdSchema,
  dueAt: z.string(),
  /** Shown once; absent where the case was filed before. */
  caseKey: z.string().optional(),
});
