import type { InferResponseType } from 'hono/client'
import { useEffect, useRef } from 'preact/hooks'
import { api, ask } from '../../../api.ts'
import { Icon } from '../../../parts/icon.tsx'
import { useLoad } from '../../../state/load.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import { requestTexts } from '../../../strings/mesh/requests.ts'

const POLL_MS = 5000
/** A radio that is connected confirms a change within this time: until then nothing is said. */
const CONFIRMED_MS = 6000

type State = InferResponseType<(typeof api.nodes)[':id']['radios']['$get'], 200>['radios'][number]

/** Which radios have not taken that the node is a favourite, ignored or muted; nothing if all did. */
export function MarksOnRadios({ node }: { node: Node }) {
  const { data } = useLoad(
    () => ask(api.nodes[':id'].radios.$get({ param: { id: node.nodeId } })),
    [node.nodeId, node.isFavorite, node.isIgnored, node.isMuted],
    POLL_MS,
  )
  const changedAt = useRef(0)
  useEffect(() => {
    changedAt.current = Date.now()
  }, [node.isFavorite, node.isIgnored, node.isMuted])
  const isLate = Date.now() - changedAt.current > CONFIRMED_MS
  const differing =
    data.value?.radios.filter(
      ({ problem, isConnected }) => problem !== null && (isLate || !isConnected || problem !== 'waiting'),
    ) ?? []
  if (differing.length === 0) return null
  return (
    <div class="notice notice-tall" role="status">
      <Icon name="star" />
      <div>
        <strong>{requestTexts.marks.title}</strong>
        {differing.map((state) => (
          <p class="measure" key={state.radio}>
            {inWords(node, state).join(' ')}
          </p>
        ))}
      </div>
    </div>
  )
}

function inWords(node: Node, { radio, isConnected, isFavorite, isIgnored, isMuted, problem }: State): string[] {
  const { favorite, notFavorite, ignored, notIgnored, muted, notMuted, problems } = requestTexts.marks
  return [
    ...(isFavorite === node.isFavorite ? [] : [node.isFavorite ? favorite(radio) : notFavorite(radio)]),
    ...(isIgnored === node.isIgnored ? [] : [node.isIgnored ? ignored(radio) : notIgnored(radio)]),
    ...(isMuted === node.isMuted ? [] : [node.isMuted ? muted(radio) : notMuted(radio)]),
    ...(problem === null ? [] : [problems[isConnected || problem !== 'waiting' ? problem : 'away']]),
  ]
}
