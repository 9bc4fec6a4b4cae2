/**
 * Answers a safe request for anything outside the API: the web application, where the runtime serves it itself. Called
 * before the viewer is looked up, so that pages load while the database does not answer.
 */
export type Pages = (request: Request) => Promise<Response>

/** Whether a path belongs to the API. */
export function isApi(path: string): boolean {
  return path.startsWith('/api') && (path.length === 4 || path[4] === '/')
}
