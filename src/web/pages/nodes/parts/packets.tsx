import type { PacketPage } from '../../../../app/mesh/topology/packets.ts'
import { api, askAs } from '../../../api.ts'
import { useLoad } from '../../../state/load.ts'
import { BROADCAST, type Node } from '../../../state/mesh/nodes.ts'
import { Age } from '../../../parts/age.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { href } from '../../../router.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { packetKind } from '../../../parts/mesh/packet-kind.ts'
import { arrivalOf, contentOf, receiverOf } from '../../../parts/mesh/packet-words.ts'

const POLL_MS = 10_000
const SHOWN = '10'

/** The latest packets from a node, and a link to all of them. */
export function NodePackets({ node }: { node: Node }) {
  const { nodeId } = node
  const { data, error } = useLoad(
    () => askAs<PacketPage>(api.packets.$get({ query: { from: nodeId, limit: SHOWN } })),
    [nodeId],
    POLL_MS,
    ['node'],
    null,
    nodeId,
  )
  const packets = data.value?.packets ?? []
  return (
    <Card
      title={nodeTexts.packets}
      actions={
        <a class="button small" href={href(`/packets?node=${nodeId}`)}>
          {nodeTexts.allPackets}
        </a>
      }
    >
      <Failure error={error.value} />
      {data.value !== null && packets.length === 0 && <p class="faint">{nodeTexts.noPackets}</p>}
      <ul class="rows tight packet-rows">
        {packets.map((packet) => (
          <PacketLine packet={packet} key={packet.id} />
        ))}
      </ul>
    </Card>
  )
}

function PacketLine({ packet }: { packet: PacketPage['packets'][number] }) {
  const { portName, timestamp, toNodeNum } = packet
  const content = contentOf(packet)
  return (
    <li>
      <span class="grow break">
        {packetKind(portName)}
        {content !== null && (
          <span class="faint">
            , <bdi>{content}</bdi>
          </span>
        )}
        {toNodeNum !== BROADCAST && <span class="faint"> · {receiverOf(packet)}</span>}
      </span>
      <span class="faint nowrap">
        {[...arrivalOf(packet).slice(0, 1), ''].join(' · ')}
        <Age at={timestamp} />
      </span>
    </li>
  )
}
