const NEEDED = [22, 12] as const

/** Ends the process with one line on a Node that is too old. Nothing native may be loaded before: it would crash instead. */
export function requireNode(remedy: string): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return
  console.error(
    `This service needs Node ${NEEDED.join('.')} or newer and was started on ${process.versions.node}. ${remedy}`,
  )
  process.exit(1)
}
