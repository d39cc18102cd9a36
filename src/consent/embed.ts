import { builtFiles } from '../http/built-file.ts';
import { sha256 } from '../lib/hash.ts';
import { type EmbedManifest, embedManifestSchema } from '../schema/banner.ts';

/** The banner as it was built. */
export type Embed = ReturnType<typeof makeEmbed>;

const directory = new URL('../../dist/banner/', import.meta.url);

export function makeEmbed() {
  const files = builtFiles(directory);
  let manifest: EmbedManifest | undefined;
  let hash: string | undefined;
  return {
    files,
    manifest: async () => {
      manifest ??= embedManifestSchema.parse(
        JSON.parse((await files('manifest.json')).body.toString()) as unknown,
      );
      return manifest;
    },
    /** SHA-256 of the script as it is served, lower-case hex. */
    scriptHash: async () => {
      hash ??= sha256((await files('embed.js')).body).toString('hex');
      return hash;
    },
  };
}
