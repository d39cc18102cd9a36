import type { Command } from 'commander';
import { Refusal } from '../../lib/errors.ts';
import { answerTool, type Tool } from '../../ops/mcp/questions-service.ts';
import { type CommandContext, checkKid, command, example, type Flags } from '../command-service.ts';
import { CommandFailed, io, say } from '../io-service.ts';

export function define(mcp: Command): void {
  mcp
    .option('--tenant <kid>', 'the tenant; may be left out while there is only one')
    .addHelpText('after', example('gpd mcp --tenant shop'))
    .action(command(serveTools));
}

async function answer(
  context: CommandContext,
  kidArgument: string | undefined,
  tool: Tool,
  input: Readonly<Record<string, unknown>>,
): Promise<object> {
  const { kid } = await context.stored(kidArgument, 'option --tenant');
  const [tenant, services, { at: _at, ...actor }] = await Promise.all([
    context.tenant(kid),
    context.services(),
    context.by(kid),
  ]);
  const { config, database, consent, rights } = services;
  const parts = { config, database, consent: consent.service, contestTexts: rights.contestTexts };
  return answerTool(tool, { ...parts, tenant, actor, isOnMachine: true }, input);
}

/** Serves the tools on standard input and output until the client closes them. */
async function serveTools(_context: unknown, { tenant }: Flags<'tenant'>): Promise<void> {
  const kid = tenant === undefined ? undefined : checkKid(tenant);
  const [{ createQuestionServer }, { StdioServerTransport }] = await Promise.all([
    import('../../ops/mcp/server-service.ts'),
    import('@modelcontextprotocol/server/stdio'),
  ]);
  const server = await createQuestionServer(
    async (tool, input) => {
      let value: object = {};
      // Each question opens its own context, so that the answer is of today's settings.
      await command(async (context) => {
        value = await answer(context, kid, tool, input);
      })().catch((error: unknown) => {
        throw error instanceof CommandFailed ? new Refusal('not-found', { details: [error.message] }) : error;
      });
      return value;
    },
    (name, error) => say(`gpd mcp: ${name} failed (${error instanceof Error ? error.name : 'unknown'})`),
  );
  const clientGone = new Promise<void>((resolve) => {
    server.server.onclose = resolve;
  });
  await server.connect(new StdioServerTransport(io().stdin, io().stdout as NodeJS.WriteStream));
  await clientGone;
}
