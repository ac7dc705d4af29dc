/* The files of the page. The build puts their text here, so that the package has no loose files. */
import style from '../page/inspector.css?text';
import page from '../page/inspector.html?text';
import script from '../page/inspector.ts?text';

/** The files of the page by their path below the base path. */
export const PAGE_FILES: ReadonlyMap<string, { readonly type: string; readonly text: string }> = new Map([
  ['/', { type: 'text/html; charset=utf-8', text: page }],
  ['/inspector.css', { type: 'text/css; charset=utf-8', text: style }],
  ['/inspector.js', { type: 'text/javascript; charset=utf-8', text: script }],
]);
