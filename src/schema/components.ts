import { z } from 'zod';

/** The shapes that have a name of their own in openapi.json, where they are written once. A file apart: every schema may have one. */
export const components = z.registry<{ readonly id: string }>();
