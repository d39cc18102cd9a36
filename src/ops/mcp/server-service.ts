import type { McpServer } from '@modelcontextprotocol/server';
import { operatorActor } from '../../audit/audit-store.ts';
import type { KeyCaller } from '../../http/authorize.ts';
import { Refusal } from '../../lib/errors.ts';
import type { Installation } from '../../tenants/directory.ts';
import { VERSION } from '../../version.ts';
import { answerTool, type Questioner, TOOLS, type Tool } from './questions-service.ts';

/** The tools as a server of the Model Context Protocol, over either transport. */

const toResult = (value: object, isError = false) => ({
  content: [{ type: 'text' as const, text: JSON.stringify(value, null, 1) }],
  isError,
});

/**
 * @param answer @throws {Refusal} whose first detail the agent reads
 * @param onFault called with any other error, of which the agent reads nothing
 */
export async function createQuestionServer(
  answer: (tool: Tool, input: Readonly<Record<string, unknown>>) => Promise<object>,
  onFault: (tool: string, error: unknown) => void,
): Promise<McpServer> {
  // Few installations are asked, so the library is loaded by the first question.
  const { McpServer } = await import('@modelcontextprotocol/server');
  const server = new McpServer({ name: 'gpd', version: VERSION });
  for (const tool of TOOLS) {
    const { name, title, description, inputSchema } = tool;
    const annotations = { readOnlyHint: true, openWorldHint: false };
    server.registerTool(name, { title, description, inputSchema, annotations }, async (input) => {
      try {
        return toResult(await answer(tool, input));
      } catch (error) {
        const sentence = error instanceof Refusal ? error.details?.[0] : undefined;
        if (sentence === undefined) onFault(name, error);
        return toResult({ error: sentence ?? 'gpd could not answer; run gpd doctor on the server' }, true);
      }
    });
  }
  return server;
}

export interface McpDeps
  extends Pick<Installation, 'config' | 'database' | 'tenants'>,
    Pick<Questioner, 'consent' | 'contestTexts'> {
  readonly onFault: (requestId: string, error: unknown) => void;
}

/** Answers one message over HTTP by a server that is made for it. @throws {Refusal} for a removed tenant */
export async function answerMessage(
  { tenants, onFault, ...parts }: McpDeps,
  { kid, key }: Pick<KeyCaller, 'kid' | 'key'>,
  request: {
    readonly message: unknown;
    /** The header MCP-Protocol-Version. */
    readonly version: string | null;
    readonly requestId: string;
  },
): Promise<Response> {
  const tenant = tenants.find(kid);
  if (!tenant) throw new Refusal('unauthenticated');
  const actor = operatorActor(tenant.rightsKey, 'gpd api key', key.id);
  const questioner: Questioner = { ...parts, tenant, actor, isOnMachine: false };
  const { createMcpHandler } = await import('@modelcontextprotocol/server');
  const handler = createMcpHandler(
    () =>
      createQuestionServer(
        (tool, input) => answerTool(tool, questioner, input),
        (_tool, error) => onFault(request.requestId, error),
      ),
    // No answer may stay open: nothing is ever published to a listener.
    { maxSubscriptions: 0 },
  );
  const headers = {
    'content-type': 'application/json',
    // The protocol asks both of every client; one that forgets them reads the answer all the same.
    accept: 'application/json, text/event-stream',
    ...(request.version !== null && { 'mcp-protocol-version': request.version }),
  };
  const post = new Request('http://localhost/v1/mcp', { method: 'POST', headers });
  return handler.fetch(post, { parsedBody: request.message });
}
