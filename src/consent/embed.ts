import { type BuiltFiles, builtFiles } from '../http/built-file.ts';
import { sha256 } from '../lib/hash.ts';
import { type EmbedManifest, embedManifestSchema } from '../schema/banner.ts';

/** The banner as it was built. */
export interface Embed {
  readonly files: BuiltFiles;
  readonly manifest: () => Promise<EmbedManifest>;
  /** SHA-256 of the script as it is served, lower-case hex. */
  readonly scriptHash: () => Promise<string>;
}

export function makeEmbed(directory: URL): Embed {
  const files = builtFiles(directory);
  let manifest: EmbedManifest | undefined;
  let hash: string | undefined;
  return {
    files,
    async manifest() {
      manifest ??= embedManifestSchema.parse(
        JSON.parse((await files('manifest.json')).body.toString()) as unknown,
      );
      return manifest;
    },
    async scriptHash() {
      hash ??= sha256((await files('embed.js')).body).toString('hex');
      return hash;
    },
  };
}
