import express, {
  Router as createRouter,
  type ErrorRequestHandler,
  type Express,
  type RequestHandler,
  type Response,
  type Router,
} from 'express';
import { ERRORS, type ErrorCode, Refusal } from '../lib/errors.ts';
import type { Route } from '../schema/route.ts';
import { charge } from './limiter.ts';
import { type PeopleLocals, speakTo } from './people.ts';
import { builtOnce, errorReply, methodNotAllowed, renderText, toRefusal } from './reply.ts';
import { hasLeft, type Limiter } from './request.ts';
import { INTERFACE, type PageRoute } from './routes.ts';
import { requestFacts, send } from './server.ts';

/** Compares paths case-sensitively: a proxy that blocks /console would not block /CONSOLE. */
export function exactRouter(): Router {
  return createRouter({ caseSensitive: true });
}

/** Charges one bucket per client before anything else is read: 429 past it. */
export function limitClients(limiter: Limiter): RequestHandler {
  return async (request, _response, next) => {
    await charge(limiter, requestFacts(request).limitKey);
    next();
  };
}

/** Answers 405 to every other method of the paths that a router has by now. */
export function refuseOtherMethods(router: Router): void {
  const methodsByPath = new Map<string, Set<string>>();
  for (const { route } of router.stack) {
    if (!route) continue;
    const methods = methodsByPath.get(route.path) ?? new Set<string>();
    for (const { method } of route.stack) methods.add(method.toUpperCase());
    if (methods.has('GET')) methods.add('HEAD');
    methodsByPath.set(route.path, methods);
  }
  for (const [path, methods] of methodsByPath) {
    router.all(path, () => {
      throw methodNotAllowed([...methods]);
    });
  }
}

/** The path of a row as Express spells it. */
const expressPath = ({ path }: Route): string => path.replace(/\{(\w+)\}/g, ':$1');

const notFound: RequestHandler = () => {
  throw new Refusal('not-found');
};

function errorHandler(onFault: (requestId: string, error: unknown) => void): ErrorRequestHandler {
  const renderError = (
    response: Response,
    people: PeopleLocals,
    code: ErrorCode,
    details: readonly string[],
  ) => renderText(response, 'error', { code, message: ERRORS[code][1], details, ...people });
  const errorPage = builtOnce((_name, response: Response, people: PeopleLocals, code: ErrorCode) =>
    renderError(response, people, code, []),
  );
  // Express recognises an error handler by its four parameters. Its default handler would print the whole
  // error.
  return async (error: unknown, request, response, _next) => {
    const refusal = toRefusal(error);
    if (!refusal && !hasLeft(error)) onFault(requestFacts(request).requestId, error);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const code = refusal?.code ?? 'internal';
    const reply = errorReply(code, refusal?.headers, refusal?.details);
    // A browser that opens an address asks for HTML; programs and scripts ask for JSON or anything.
    if (INTERFACE.test(request.path) || request.accepts(['json', 'html']) !== 'html') {
      await send(response, reply);
      return;
    }
    response.status(reply.status).set(reply.headers);
    const people = speakTo(response, {});
    response
      .type('html')
      .send(
        refusal?.details?.length
          ? await renderError(response, people, code, refusal.details)
          : (await errorPage(`${code} ${people.lang}`, response, people, code)).body,
      );
  };
}

export interface ExpressDeps {
  /** Before the pages of the table: `/` of the demo leads to its tour. */
  readonly routers: readonly Router[];
  readonly pages: readonly PageRoute[];
  /** Paths without a row. */
  readonly behind: readonly Router[];
  readonly views: string;
  readonly onFault: (requestId: string, error: unknown) => void;
}

/** The Express app, behind the table of routes. Middleware runs in the order of the lines. */
export function createExpressApp(deps: ExpressDeps): Express {
  const app = express();
  app.set('views', deps.views);
  app.set('view engine', 'ejs');
  app.enable('view cache');
  app.set('etag', false);
  app.set('query parser', 'simple');
  app.disable('x-powered-by');
  app.use((request, _response, next) => next(requestFacts(request).error));
  for (const router of deps.routers) app.use(router);
  const pages = exactRouter();
  for (const { row, page } of deps.pages) pages[row.method as 'get' | 'post'](expressPath(row), page);
  // Express drops a fragment, which no path of the table has, and would answer OPTIONS itself.
  refuseOtherMethods(pages);
  app.use(pages);
  for (const router of deps.behind) app.use(router);
  app.use(notFound);
  app.use(errorHandler(deps.onFault));
  return app;
}
