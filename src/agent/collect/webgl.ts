import { attempt, text } from './read.ts';

type Gl = WebGLRenderingContext;

/** WebKit and Blink mask the plain names so; Gecko answers plainly and warns about the extension. */
const MASKED = /^WebKit/;

function unmasked(
  gl: Gl,
  plain: number,
  extended: 'UNMASKED_RENDERER_WEBGL' | 'UNMASKED_VENDOR_WEBGL',
): unknown {
  const name: unknown = gl.getParameter(plain);
  if (typeof name === 'string' && !MASKED.test(name)) return name;
  const extension = gl.getExtension('WEBGL_debug_renderer_info');
  return extension ? gl.getParameter(extension[extended]) : name;
}

export const unmaskedRenderer = (gl: Gl): unknown => unmasked(gl, gl.RENDERER, 'UNMASKED_RENDERER_WEBGL');

export function collectWebgl() {
  const gl = attempt(() => document.createElement('canvas').getContext('webgl'));
  if (!gl) return { vendor: null, renderer: null };
  return {
    vendor: text(() => unmasked(gl, gl.VENDOR, 'UNMASKED_VENDOR_WEBGL')),
    renderer: text(() => unmaskedRenderer(gl)),
  };
}
