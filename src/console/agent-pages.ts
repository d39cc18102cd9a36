import type { AgentKind } from '../agents/policy.ts';
import { readAgents, readCase } from './agent-view-service.ts';
import type { ConsoleVisit, PageTable } from './session-guard-service.ts';

/** The page about agents at the door: who came, how they were answered, and a refusal by its number. */

async function showAgents({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const searched = await readCase(context, staff, request.query['case']);
  const values = {
    here: 'agents',
    searched,
    ...(await readAgents(context, staff)),
    answerOf: ({ isRefused, isDry }: AgentKind): string => {
      if (!isRefused) return 'let through';
      return isDry ? 'would be refused' : 'refused';
    },
  };
  context.render(response, 'agents', values, searched && !searched.found ? 404 : 200);
}

export const agentPages: PageTable = { pages: { '/agents': ['staff', showAgents] }, forms: {} };
