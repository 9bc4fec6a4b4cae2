/** In place of Hono's functions for cookies, whose client needs this one: a page can't set the header. */
export function serialize(): never {
  throw new Error('A page cannot set a cookie header.')
}
