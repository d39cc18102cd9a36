import type { Command } from 'commander';
import { VERSION } from '../../version.ts';
import { checkKid, command, example, type Flags } from '../command-service.ts';
import { CommandFailed, io, say } from '../io-service.ts';

export function define(mcp: Command): void {
  mcp
    .option('--tenant <kid>', 'the tenant; may be left out while there is only one')
    .addHelpText('after', example('gpd mcp --tenant shop'))
    .action(command(serveTools));
}

const toResult = (value: object, isError = false) => ({
  content: [{ type: 'text' as const, text: JSON.stringify(value, null, 1) }],
  isError,
});

/** Serves the tools on standard input and output until the client closes them. */
async function serveTools(_context: unknown, { tenant }: Flags<'tenant'>): Promise<void> {
  const kid = tenant === undefined ? undefined : checkKid(tenant);
  const [{ McpServer }, { StdioServerTransport }, { TOOLS, answerTool }] = await Promise.all([
    import('@modelcontextprotocol/server'),
    import('@modelcontextprotocol/server/stdio'),
    import('../mcp/tools-service.ts'),
  ]);
  const server = new McpServer({ name: 'gpd', version: VERSION });
  for (const tool of TOOLS) {
    const { name, title, description, inputSchema } = tool;
    const annotations = { readOnlyHint: true, openWorldHint: false };
    server.registerTool(name, { title, description, inputSchema, annotations }, async (input) => {
      try {
        let answer: object = {};
        await command(async (context) => {
          answer = await answerTool(tool, context, kid, input);
        })();
        return toResult(answer);
      } catch (error) {
        if (error instanceof CommandFailed) return toResult({ error: error.message }, true);
        say(`gpd mcp: ${name} failed (${error instanceof Error ? error.name : 'unknown'})`);
        return toResult({ error: 'gpd could not answer; run gpd doctor on the server' }, true);
      }
    });
  }
  const clientGone = new Promise<void>((resolve) => {
    server.server.onclose = resolve;
  });
  await server.connect(new StdioServerTransport(io().stdin, io().stdout as NodeJS.WriteStream));
  await clientGone;
}
