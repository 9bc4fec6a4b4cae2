import type { Signal } from '@preact/signals'
import { api, ask } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { nameOf } from '../../state/mesh/nodes.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { isOwnKind } from '../../../shared/mesh/link-kinds.ts'

const POLL_MS = 30_000

type Radio = { readonly name: string; readonly nodeNum: number }

/** Radios that can send, those of collectors included, for users who may see them. */
function useRadios(): Radio[] {
  const { data } = useLoad(async () => (can('info', 'read') ? ask(api.info.$get()) : null), [], POLL_MS, ['link'])
  const own = (data.value?.links ?? []).flatMap(({ name, kind, state, radio, txEnabled }) =>
    isOwnKind(kind) && state === 'connected' && radio !== null && txEnabled !== false
      ? [{ name, nodeNum: radio.nodeNum }]
      : [],
  )
  const commanded = (data.value?.sources ?? []).flatMap(({ name, localNodeNum, sends }) =>
    localNodeNum !== null && sends.includes('texts') ? [{ name, nodeNum: localNodeNum }] : [],
  )
  return [...own, ...commanded]
}

/** Chooses the radio that sends, if there are several. Empty: the most suitable one. */
export function SendBy({ radio }: { radio: Signal<string> }) {
  const radios = useRadios()
  const isThere = radios.some(({ name }) => name === radio.value)
  if (radios.length < 2 && (radio.value === '' || isThere)) return null
  return (
    <label class="send-by">
      {t.messages.sendBy}{' '}
      <select value={radio.value} onChange={(event) => (radio.value = event.currentTarget.value)}>
        <option value="">{t.messages.bestRadio}</option>
        {!isThere && radio.value !== '' && <option value={radio.value}>{radio.value}</option>}
        {radios.map(({ name, nodeNum }) => (
          <option value={name} key={name}>
            {labelOf(nodeNum, name, radios)}
          </option>
        ))}
      </select>
    </label>
  )
}

/** The node's name, and the link if two nodes have the same name. */
function labelOf(nodeNum: number, link: string, radios: readonly Radio[]): string {
  const label = nameOf(nodeNum, link)
  const namesakes = radios.filter(({ name, nodeNum: other }) => nameOf(other, name) === label)
  return namesakes.length > 1 ? `${label} (${link})` : label
}
