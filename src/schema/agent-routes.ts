import { agentAnswerSchema, agentCaseSchema, agentRequestSchema, agentReviewSchema } from './agents.ts';
import { PROTECTED } from './consent-routes.ts';
import { answer, BODY_ERRORS, type Route } from './route.ts';

/** The door for agents: a proxy and a backend ask, and who was refused has a review. */

const REFUSED = { type: 'text/plain' } as const;

export const AGENT_ROUTES = {
  checkAgent: {
    method: 'get',
    tag: 'agents',
    path: '/v1/agents/check',
    summary: 'What a proxy asks before it lets a request through (auth_request, forward_auth, ForwardAuth).',
    credential: 'none',
    cors: 'none',
    limit: 'none',
    hot: true,
    responses: {
      204: { text: 'Let through; Gpd-Agent-Status, and of a verified agent Gpd-Agent and Gpd-Agent-Intent' },
      401: { ...REFUSED, text: 'The policy wants a signature, as Accept-Signature says' },
      403: { ...REFUSED, text: 'The policy refuses the request; Gpd-Agent-Case names the decision' },
      429: { ...REFUSED, text: 'The policy allows fewer requests; wait for Retry-After' },
    },
    errors: ['invalid-request', 'unavailable'],
  },
  verifyAgent: {
    method: 'post',
    tag: 'agents',
    path: '/v1/agents/verify',
    summary: 'Who signed a request that the backend describes, and if not, why.',
    credential: ['secret', 'read-only', 'operator'],
    cors: 'none',
    limit: 'consent',
    request: agentRequestSchema,
    responses: answer(200, 'The outcome, with a reason of a closed list', agentAnswerSchema),
    errors: [...PROTECTED, ...BODY_ERRORS, 'unavailable'],
  },
  reviewAgent: {
    method: 'post',
    tag: 'agents',
    path: '/v1/agents/review',
    summary: 'File a review of a refusal at the door, by its Gpd-Agent-Case.',
    credential: 'none',
    cors: 'none',
    limit: 'privacy',
    request: agentReviewSchema,
    responses: answer(202, 'Filed; a second one answers the first, without its key', agentCaseSchema),
    errors: ['rate-limited', ...BODY_ERRORS, 'no-such-decision', 'too-many-cases', 'unavailable'],
  },
} as const satisfies Readonly<Record<string, Route>>;
