/** The pages of the web application, and the paths of each, relative to the site. */
export const PAGES = {
  dashboard: /^\/$/,
  map: /^\/map$/,
  nodes: /^\/nodes$/,
  compare: /^\/nodes\/compare$/,
  node: /^\/nodes\/(?<id>!(?!0{8}|f{8})[0-9a-f]{8})$/i,
  messages: /^\/messages$/,
  traceroutes: /^\/traceroutes$/,
  neighbors: /^\/neighbors$/,
  findings: /^\/findings$/,
  topology: /^\/topology$/,
  boards: /^\/boards$/,
  board: /^\/boards\/(?<id>[1-9]\d{0,14})$/,
  packets: /^\/packets$/,
  alerts: /^\/alerts$/,
  automation: /^\/automation$/,
  newRule: /^\/automation\/new$/,
  rule: /^\/automation\/(?<id>[1-9]\d{0,14})$/,
  connections: /^\/configuration\/connections$/,
  configuration: /^\/configuration(?:\/(?<section>\w{1,60}))?$/,
  users: /^\/users$/,
  newUser: /^\/users\/new$/,
  user: /^\/users\/(?<id>[1-9]\d{0,14})$/,
  publicAccess: /^\/public-access$/,
  audit: /^\/audit$/,
  backups: /^\/backups$/,
  copies: /^\/backups\/copies$/,
  system: /^\/system$/,
  settings: /^\/settings$/,
  account: /^\/account$/,
  signIn: /^\/login$/,
  forgot: /^\/forgot-password$/,
  mailLink: /^\/link$/,
  embedMap: /^\/embed\/map$/,
  embedNode: /^\/embed\/node\/(?<id>!(?!0{8}|f{8})[0-9a-f]{8})$/i,
} as const

/** Whether a page has this path; slashes at its end do not count. */
export function isPagePath(path: string): boolean {
  const plain = path.replace(/(?<=.)\/+$/, '')
  return Object.values(PAGES).some((pattern) => pattern.test(plain))
}

/** Whether a path belongs to the pages that other sites may show in a frame. */
export function isEmbedPath(path: string): boolean {
  return path === '/embed' || path.startsWith('/embed/')
}
