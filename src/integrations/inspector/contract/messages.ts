/* Everything that the server and the page say to each other. The page imports it as `../messages.js`, with its description. */
export type * from './own.js';
export type * from './rows.js';
export type * from './stream.js';
export type * from './timeline.js';
export type * from './unlock.js';
