// Nothing native may be loaded before this check: an old Node would crash in it instead of saying what is wrong.
const NEEDED = [22, 12] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  console.error(
    `This service needs Node ${NEEDED.join('.')} or newer and was started on ${process.versions.node}. ` +
      'Start it with "npm start", which brings its own Node.',
  )
  process.exit(1)
}

const { run } = await import('./service.ts')
await run(process.env)
