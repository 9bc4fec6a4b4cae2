const READ = { read: true, write: false }

/** Public access that shows everything it can, of the first channel. */
export const OPEN = {
  enabled: true,
  permissions: { dashboard: READ, nodes: READ, messages: READ, info: READ },
  channels: [0],
  positionPrecisionBits: 13,
  hideSilentAfterDays: 30,
}
