// A process that downloads a region and may be killed: node fetch-region.ts <data directory> <url> <area as JSON>.
import { parseConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { areaSchema } from '../../../src/app/mesh/map/region/area.ts'
import { openRegions } from '../../../src/node/map/region/regions.ts'
import { systemClock } from '../../../src/node/clock.ts'

const [dataDir = '', url = '', area = ''] = process.argv.slice(2)
const parsed = parseConfig({ DATA_DIR: dataDir, MAP_ARCHIVE_URL: url })
if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
let seconds = 0
const regions = openRegions({
  config: parsed.config,
  log: createLog({ level: 'info', format: 'json', now: systemClock.now, write: (line) => console.log(line) }),
  // Progress is noted after each request.
  clock: { ...systemClock, monotonic: () => (seconds += 2000) },
  record: async () => {},
})
await regions.start(areaSchema.parse(JSON.parse(area)), async () => {})
await regions.idle()
