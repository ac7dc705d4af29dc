/* The text of a file, as `.ci/page-text.cjs` reads it. */
declare module '*?text' {
  const text: string;
  export default text;
}
