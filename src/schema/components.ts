import { z } from 'zod';

/** The shapes that openapi.json writes once, under a name. The file is apart because every file of schemas imports it. */
export const components = z.registry<{ readonly id: string }>();
