import type { AgentKind } from '../agents/policy.ts';
import { mayOpen } from '../auth/credentials.ts';
import { Refusal } from '../lib/errors.ts';
import { readAgents, readCase, saveAgentRow, switchDryRun } from './agent-view-service.ts';
import { redirectDone, takeFlash } from './flash.ts';
import { readField } from './form.ts';
import type { ConsoleVisit, FormVisit, PageTable } from './session-guard-service.ts';

/** The page about agents at the door: who came, how they were answered, and a refusal by its number. */

async function showAgents(visit: ConsoleVisit): Promise<void> {
  const { context, request, response, staff } = visit;
  const done = takeFlash(visit)?.done ?? null;
  const searched = await readCase(context, staff, request.query['case']);
  const values = {
    here: 'agents',
    searched,
    done,
    maySwitch: mayOpen(staff.role, 'operator'),
    ...(await readAgents(context, staff)),
    answerOf: ({ isRefused, isDry }: AgentKind): string => {
      if (!isRefused) return 'let through';
      return isDry ? 'would be refused' : 'refused';
    },
  };
  context.render(response, 'agents', values, searched && !searched.found ? 404 : 200);
}

async function switchFromForm(visit: FormVisit): Promise<void> {
  const dry = readField(visit.form, 'dry');
  if (dry !== 'true' && dry !== 'false')
    throw new Refusal('invalid-request', { details: ['dry: true or false'] });
  const isDry = dry === 'true';
  await switchDryRun(visit.context, visit.staff, isDry);
  redirectDone(visit, '/console/agents', isDry ? 'dry' : 'in-force');
}

const ACTIONS = ['allow', 'deny', 'none'] as const;

async function saveRowFromForm(visit: FormVisit): Promise<void> {
  const { context, form, staff } = visit;
  const action = ACTIONS.find((name) => name === readField(form, 'action'));
  const agent = readField(form, 'agent') ?? '';
  const path = readField(form, 'path') ?? '/';
  if (!action || agent === '*')
    throw new Refusal('invalid-request', { details: ['name one agent, and allow, deny or none'] });
  await saveAgentRow(context, staff, { agent, path, action });
  redirectDone(visit, '/console/agents', action);
}

export const agentPages: PageTable = {
  pages: { '/agents': ['staff', showAgents] },
  forms: { '/agents/dry-run': ['operator', switchFromForm], '/agents/row': ['operator', saveRowFromForm] },
};
