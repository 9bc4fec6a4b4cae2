/** The pages that an administrator reaches, with the page of this node. */
export const pagesWith = (nodeId: string): readonly string[] => [
  '/',
  '/map',
  '/nodes',
  `/nodes/${nodeId}`,
  '/messages',
  '/alerts',
  '/findings',
  '/topology',
  '/boards',
  '/traceroutes',
  '/neighbors',
  '/packets',
  '/automation',
  '/configuration',
  '/users',
  '/users/1',
  '/audit',
  '/backups',
  '/system',
  '/settings',
  '/account',
]

/** A phone on a bad link, for `Network.emulateNetworkConditions`: bytes a second each way, and milliseconds of latency. */
export const THIRD_GENERATION = {
  offline: false,
  downloadThroughput: 50_000,
  uploadThroughput: 50_000,
  latency: 400,
}
