import { Age } from '../../../parts/age.tsx'
import { decibels, signalOf } from '../../../parts/mesh/snr.ts'
import '../../../parts/mesh/ways.css'
import { Card } from '../../../parts/page.tsx'
import { href } from '../../../router.ts'
import { can } from '../../../state/session.ts'
import { type Node, nameOf } from '../../../state/mesh/nodes.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { t } from '../../../strings.ts'
import type { Neighbor } from '../../../state/mesh/neighbors.ts'
import { pairsOf } from './links.ts'

const SHOWN = 8

/** Whom the node hears and who hears it, with the signal in each direction. */
export function NodeNeighbors({ node, links }: { node: Node; links: readonly Neighbor[] | null }) {
  const pairs = pairsOf(node.nodeNum, links ?? [])
  return (
    <Card
      title={t.neighbors.title}
      actions={
        pairs.length > SHOWN && (
          <a class="button small" href={href(`/neighbors?q=${node.nodeId}`)}>
            {nodeTexts.allNeighbors(pairs.length)}
          </a>
        )
      }
    >
      {links?.length === 0 && <p class="faint">{nodeTexts.noNeighbors}</p>}
      {pairs.length > 0 && (
        <table class="pair-table">
          <thead>
            <tr>
              <th scope="col">{t.neighbors.node}</th>
              <th scope="col">{nodeTexts.hearsIt}</th>
              <th scope="col">{nodeTexts.heardByIt}</th>
            </tr>
          </thead>
          <tbody>
            {pairs.slice(0, SHOWN).map(({ nodeNum, hears, heard }) => (
              <tr key={nodeNum}>
                <th scope="row">
                  <NeighborName nodeNum={nodeNum} />
                </th>
                <td>
                  <Direction link={hears} />
                </td>
                <td>
                  <Direction link={heard} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  )
}

function NeighborName({ nodeNum }: { nodeNum: number }) {
  const nodeId = `!${nodeNum.toString(16).padStart(8, '0')}`
  const name = nameOf(nodeNum, nodeId)
  if (!can('nodes', 'read')) return <span class="clip">{name}</span>
  return (
    <a class="clip" dir="auto" href={href(`/nodes/${nodeId}`)} title={name}>
      {name}
    </a>
  )
}

function Direction({ link }: { link: Neighbor | null }) {
  if (link === null) return <span class="faint">{t.common.none}</span>
  return (
    <>
      <span class={`hop snr-${signalOf(link.snr)}`}>{decibels(link.snr)}</span>{' '}
      <span class="faint nowrap">
        <Age at={link.timestamp} short />
      </span>
    </>
  )
}
