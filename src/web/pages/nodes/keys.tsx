import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { Failure } from '../../parts/notice.tsx'
import { href } from '../../router.ts'
import { useLoad } from '../../state/load.ts'
import { type KeyHealth, keyHealth } from '../../state/mesh/key-health.ts'
import { nameOf } from '../../state/mesh/nodes.ts'
import { keyTexts } from '../../strings/mesh/keys.ts'

const POLL_MS = 60_000
/** More would push the list of nodes out of sight. */
const MAX_GROUPS = 10

/** Loads which keys are doubtful, for the filter by it, and says what that means. */
export function KeyHelp({ problem }: { problem: string }) {
  const { data, error, reload } = useLoad(() => ask<KeyHealth[]>(api.nodes.keys.$get()), [], POLL_MS)
  useEffect(() => {
    keyHealth.value = data.value === null ? null : new Map(data.value.map((each) => [each.nodeNum, each]))
  }, [data.value])
  const texts: Readonly<Record<string, string>> = keyTexts.help
  return (
    <>
      {(data.value?.length ?? 0) > 0 && <p class="notice measure">{texts[problem] ?? keyTexts.help.any}</p>}
      {data.value !== null && (problem === 'any' || problem === 'shared') && <Groups known={data.value} />}
      <Failure error={error.value} retry={() => void reload()} />
    </>
  )
}

/** The nodes that share a key, those of each key in one row. */
function Groups({ known }: { known: readonly KeyHealth[] }) {
  const told = new Set<number>()
  const groups = known.flatMap(({ nodeNum, sharedWith, holders }) => {
    const isTold = told.has(nodeNum)
    for (const each of [nodeNum, ...sharedWith]) told.add(each)
    return isTold || sharedWith.length === 0 ? [] : [{ nums: [nodeNum, ...sharedWith], holders }]
  })
  if (groups.length === 0) return null
  return (
    <section aria-label={keyTexts.groups}>
      <h2>{keyTexts.groups}</h2>
      <ul class="rows tight">
        {groups.slice(0, MAX_GROUPS).map(({ nums, holders }) => (
          <li key={nums[0]}>
            <span class="grow break">
              {nums.map((nodeNum, at) => (
                <>
                  {at > 0 && ', '}
                  <NodeLink nodeNum={nodeNum} />
                </>
              ))}{' '}
              {holders > nums.length && <span class="faint">{keyTexts.holders(holders)}</span>}
            </span>
          </li>
        ))}
      </ul>
      {groups.length > MAX_GROUPS && <p class="faint">{keyTexts.moreGroups(groups.length - MAX_GROUPS)}</p>}
    </section>
  )
}

export function NodeLink({ nodeNum }: { nodeNum: number }) {
  const id = `!${nodeNum.toString(16).padStart(8, '0')}`
  return (
    <a href={href(`/nodes/${id}`)}>
      <bdi>{nameOf(nodeNum, id)}</bdi>
    </a>
  )
}
