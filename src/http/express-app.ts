import express, {
  type ErrorRequestHandler,
  type Express,
  type RequestHandler,
  type Response,
  type Router,
} from 'express';
import helmet from 'helmet';
import { ERRORS, type ErrorCode, Refusal } from '../lib/errors.ts';
import { builtOnce, errorReply, HSTS_SECONDS, renderText, toRefusal } from './reply.ts';
import { hasLeft } from './request.ts';
import { requestFacts, send } from './server.ts';

/** Scripts and styles from this origin only, nothing inline, no framing. */
const CSP = {
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    workerSrc: ["'self'"],
    frameSrc: ["'self'"],
    formAction: ["'self'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
  },
};

/** Programs call these paths, also with the `Accept` of a browser: refusals below them are JSON (docs/errors.md). */
const INTERFACE = /^\/(?:v1|_fp|privacy|ledger)(?:\/|$)/i;

const notFound: RequestHandler = () => {
  throw new Refusal('not-found');
};

function errorHandler(onFault: (requestId: string, error: unknown) => void): ErrorRequestHandler {
  const errorPage = builtOnce((code, response: Response) =>
    renderText(response, 'error', { code, message: ERRORS[code as ErrorCode][1], details: [] }),
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
      send(response, reply);
      return;
    }
    response.status(reply.status).set(reply.headers);
    response
      .type('html')
      .send(
        refusal?.details?.length
          ? await renderText(response, 'error', { code, message: ERRORS[code][1], details: refusal.details })
          : (await errorPage(code, response)).body,
      );
  };
}

export interface ExpressDeps {
  readonly routers: readonly Router[];
  readonly views: string;
  /** The public origin is https. */
  readonly https: boolean;
  readonly onFault: (requestId: string, error: unknown) => void;
}

/** The Express app with every route except the hot lanes. Middleware runs in the order of the lines. */
export function createExpressApp(deps: ExpressDeps): Express {
  const app = express();
  app.set('views', deps.views);
  app.set('view engine', 'ejs');
  app.enable('view cache');
  app.set('etag', false);
  app.set('query parser', 'simple');
  app.disable('x-powered-by');
  app.use(
    helmet({
      contentSecurityPolicy: CSP,
      crossOriginResourcePolicy: { policy: 'same-origin' },
      // Never set for the operator's other hosts, nor when the public origin is plain http.
      strictTransportSecurity: deps.https && { maxAge: HSTS_SECONDS, includeSubDomains: false },
      xFrameOptions: { action: 'deny' },
    }),
  );
  for (const router of deps.routers) app.use(router);
  app.use(notFound);
  app.use(errorHandler(deps.onFault));
  return app;
}
