import './marked.css'
import { useEffect, useMemo } from 'preact/hooks'
import { DAY_MS } from '../../../../shared/time.ts'
import { api, askAs } from '../../../api.ts'
import { setQuery } from '../../../router.ts'
import { useLoad } from '../../../state/load.ts'
import { useNeighbors } from '../../../state/mesh/neighbors.ts'
import { nodes } from '../../../state/mesh/nodes.ts'
import { can, isAnonymous } from '../../../state/session.ts'
import { findingTexts } from '../../../strings/mesh/findings.ts'
import type { Link } from '../layers/lines.ts'
import { marks } from './marks.ts'

/** As old as links may be that a finding rests on. */
const LINKS_MS = 7 * DAY_MS
const NO_LINKS: readonly Link[] = []

/** Marks the nodes that the address names, and with `between` the links between them, and says so. */
export function Marked({ ids, between }: { ids: string; between: boolean }) {
  const wanted = useMemo(() => new Set(ids.split(',')), [ids])
  const found = (nodes.value ?? []).filter(({ nodeId }) => wanted.has(nodeId))
  const placed = found.filter(({ position }) => position !== null)
  const nums = found.map(({ nodeNum }) => nodeNum).join()
  const withLinks = between && can('info', 'read')
  const reported = useNeighbors(withLinks).data.value
  const heard = useLoad(async () => {
    if (!withLinks || isAnonymous.value) return NO_LINKS
    const query = { since: String(Date.now() - LINKS_MS) }
    return (await askAs<{ links: readonly Link[] }>(api.links.$get({ query }))).links
  }, [withLinks]).data.value
  useEffect(() => {
    const nodeNums = new Set(found.map(({ nodeNum }) => nodeNum))
    const all = [...(reported ?? []), ...(heard ?? [])]
    const links = withLinks
      ? all.filter(({ nodeNum, neighborNum }) => nodeNums.has(nodeNum) && nodeNums.has(neighborNum))
      : null
    marks.value = { key: `${nums} ${links?.length}`, nodeNums, links }
  }, [nums, withLinks, reported, heard])
  useEffect(() => () => void (marks.value = null), [])
  return (
    <div class="map-marked" role="status">
      <span>
        {findingTexts.marked(placed.length)}
        {placed.length < wanted.size && ` ${findingTexts.withoutPlace(wanted.size - placed.length)}`}
      </span>
      <button type="button" class="button small" onClick={() => setQuery({ mark: '', between: '' })}>
        {findingTexts.unmark}
      </button>
    </div>
  )
}
