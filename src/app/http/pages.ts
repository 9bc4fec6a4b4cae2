/**
 * Answers a safe request for anything outside the API: the web application, where the runtime serves it itself. Called
 * before the viewer is looked up, so that pages load while the database does not answer.
 */
export type Pages = (request: Request) => Promise<Response>

/** Whether a path belongs to the API. */
export function isApi(path: string): boolean {
  return path.startsWith('/api') && (path.length === 4 || path[4] === '/')
}

/**
 * A request for a page in frames, never to be answered with 304: a browser that stored the page could go on with the
 * sites that could show it then.
 */
export function unconditional(request: Request): Request {
  const headers = new Headers(request.headers)
  for (const name of ['if-none-match', 'if-modified-since']) headers.delete(name)
  return new Request(request, { headers })
}
