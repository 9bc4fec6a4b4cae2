import { useRef } from 'preact/hooks'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Page } from '../../parts/page.tsx'
import { asLeft, href, nodeIdsOf, place, setQuery } from '../../router.ts'
import { type Node, nodeByNum, nodeName, useNames } from '../../state/mesh/nodes.ts'
import { can, isAnonymous } from '../../state/session.ts'
import { compareTexts } from '../../strings/mesh/compare.ts'
import { t } from '../../strings.ts'
import './compare.css'
import { filledColumns } from './columns.tsx'
import { ComparedHistory } from './compared-history.tsx'
import { MAX_COMPARED } from './picked.ts'

/** A node of a comparison; `node` is null while it is not known. */
type Compared = { readonly nodeId: string; readonly name: string; readonly node: Node | null }

/** The values of some nodes side by side, and their measurements in one chart. The address names them. */
export function ComparePage() {
  useNames()
  const ids = nodeIdsOf(place.value.query, 'ids').slice(0, MAX_COMPARED)
  const show = (next: readonly string[]) => setQuery({ ids: next.join(',') })
  const compared = ids.map((nodeId): Compared => {
    const node = nodeByNum(Number.parseInt(nodeId.slice(1), 16)) ?? null
    return { nodeId, node, name: node === null ? nodeId : nodeName(node) }
  })
  return (
    <Page title={compareTexts.title} up={{ path: asLeft('/nodes'), name: t.nodes.title }}>
      {ids.length < MAX_COMPARED && !isAnonymous.value && (
        <div class="compare-add">
          <NodePicker
            label={compareTexts.add}
            value=""
            none=""
            isOffered={({ nodeId }) => !ids.includes(nodeId)}
            onChoose={(nodeId) => {
              if (nodeId !== '') show([...ids, nodeId])
            }}
          />
        </div>
      )}
      {ids.length === 0 && <p class="faint">{compareTexts.help(MAX_COMPARED)}</p>}
      {ids.length > 0 && (
        <>
          {can('info', 'read') && <ComparedHistory compared={compared} />}
          <ComparedValues compared={compared} onRemove={(gone) => show(ids.filter((id) => id !== gone))} />
        </>
      )}
    </Page>
  )
}

type ValuesProps = { compared: readonly Compared[]; onRemove(nodeId: string): void }

/** A row for each value that at least one of them has. */
function ComparedValues({ compared, onRemove }: ValuesProps) {
  const box = useRef<HTMLDivElement>(null)
  const rows = filledColumns(compared.flatMap(({ node }) => node ?? [])).filter(({ key }) => key !== 'name')
  const remove = (nodeId: string) => {
    onRemove(nodeId)
    box.current?.focus()
  }
  return (
    <div class="table-box compare-box" tabIndex={0} role="region" aria-label={compareTexts.title} ref={box}>
      <table class="table compare-table">
        <thead>
          <tr>
            <td />
            {compared.map(({ nodeId, name }, index) => (
              <th scope="col" key={nodeId}>
                <span class="compare-head">
                  <i class={`line-look look-${index}`} aria-hidden="true" />
                  <a class="grow" dir="auto" href={href(`/nodes/${nodeId}`)}>
                    {name}
                  </a>
                  <button
                    type="button"
                    class="icon-button"
                    aria-label={t.nodes.takeOut(name)}
                    onClick={() => remove(nodeId)}
                  >
                    <Icon name="close" />
                  </button>
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, name, cell }) => (
            <tr key={key}>
              <th scope="row">{name}</th>
              {compared.map(({ nodeId, node }) => (
                <td key={nodeId}>{node === null ? t.common.none : cell(node)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
