import { makeSurface, type Surface } from './surface.ts';

// Known only while the script runs for the first time, so it is read now and not in a call.
const { currentScript } = document;
const scriptUrl = currentScript instanceof HTMLScriptElement && currentScript.src ? currentScript.src : null;

// The banner shares the name: each adds itself and leaves the other.
const page = window as { gpd?: { agent?: Surface } };
page.gpd = page.gpd ?? {};
page.gpd.agent = makeSurface(scriptUrl);
