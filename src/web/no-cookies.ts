/** Replaces Hono's functions for cookies. Its client imports this one, but a page cannot set the header. */
export function serialize(): never {
  throw new Error('A page cannot set a cookie header.')
}
