import { createPlaces } from '../../http/limiter.ts';
import { headerText } from '../../http/request.ts';
import { reply, type ServedRoute } from '../../http/routes.ts';
import { Refusal } from '../../lib/errors.ts';
import { ROUTES } from '../../schema/routes.ts';
import { answerMessage, type McpDeps } from './server-service.ts';

/** `POST /v1/mcp`: the questions of `gpd mcp` for an operator's key, by Streamable HTTP without a session. */

/** Calls of one tenant at the same moment: doctor reads the whole installation. */
const PLACES = 4;
const tooMany = (): Refusal => new Refusal('rate-limited', { headers: { 'retry-after': '1' } });

export function mcpRoutes(deps: McpDeps): readonly ServedRoute[] {
  const takePlace = createPlaces(PLACES);
  return [
    reply(ROUTES.askQuestion, async ({ caller, headers, readBody, requestId }) => {
      const message = await readBody();
      const leave = takePlace(caller.kid, tooMany);
      try {
        const version = headerText(headers, 'mcp-protocol-version');
        const answer = await answerMessage(deps, caller, { message, version, requestId });
        const type = answer.headers.get('content-type') ?? 'application/json';
        const head = { 'content-type': type, 'cache-control': 'no-store' };
        return { status: answer.status, headers: head, body: await answer.text() };
      } finally {
        leave();
      }
    }),
  ];
}
