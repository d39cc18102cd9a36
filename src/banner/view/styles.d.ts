/** The build hands a style sheet in as its text. */
declare module '*.css' {
  export const css: string;
}
