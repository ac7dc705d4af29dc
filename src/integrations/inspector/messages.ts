/*
 * What the server and the page say to each other: types alone, so that the page's script has no code of the server.
 *
 * All paths are relative to the base path of the inspector, which ends with a slash. The page uses relative URLs only.
 *
 *   GET  ./               the page. The base path without its slash redirects here.
 *   GET  ./inspector.css  its style
 *   GET  ./inspector.js   its script, one ES module: what the build makes of `page/inspector.ts`
 *   GET  ./events         server-sent events: `ServerEvents`. The query is a `View`. One of these streams is the only
 *                         connection that a page keeps. To search, to select a lock or to show more rows, the page closes
 *                         its stream and opens another one.
 *   POST ./unlock         frees a lock: `UnlockRequest` as JSON, with the header `holdfast-csrf`. Only with `actions`.
 *
 * The Content-Security-Policy of the page needs `script-src`, `style-src` and `connect-src` for this origin, and `img-src
 * data:` for its icon. The script sets styles through the CSSOM only, so that no inline style is needed.
 *
 * Every error is JSON: `ErrorReply`. After a status other than 200, a browser does not open the stream again by itself.
 * The page shows the error and a button that tries again.
 *
 * Where a time is a moment, it is in epoch ms of the server (`at`, `since`). The page converts it by `Hello.now`. Where it
 * is a rest, it is in ms and counts down from `readAgo` before the event was sent.
 *
 * All text comes from Redis or from other programs and is untrusted: the page sets it as text, never as HTML.
 */
export type * from './contract/messages.js';
