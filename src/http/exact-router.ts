import { Router } from 'express';

/** Paths are compared by case: a proxy that keeps /console from strangers has to keep /CONSOLE from them as well. */
export function exactRouter(): Router {
  return Router({ caseSensitive: true });
}
