import { tenths } from '../../format.ts'
import { useSignal } from '@preact/signals'
import type { Value } from '../../csv.ts'
import { firmwareName, humanize, modelName, plain } from '../../format.ts'
import { measure } from '../../measure.ts'
import { isActive, isAltered, longNameOf, type Node, nodeName, shortNameOf } from '../../state/mesh/nodes.ts'
import { preference, readList } from '../../state/preferences.ts'
import { Age, now } from '../../parts/age.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Battery, Signal } from '../../parts/gauges.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Mark } from '../../parts/list/mark.tsx'
import type { Column } from '../../parts/list/virtual-table.tsx'
import { href } from '../../router.ts'
import { compareTexts } from '../../strings/mesh/compare.ts'
import { t } from '../../strings.ts'
import { MAX_COMPARED, picked, togglePick } from './picked.ts'

export type Key = keyof typeof t.nodes.columns

type NodeColumn = Column<Node, Key> & {
  /** The value by which the list is sorted; null comes last. */
  readonly value: (node: Node) => Value
  /** Sorts in descending order on the first click. */
  readonly downFirst?: boolean
  /** Only shown if it was chosen. */
  readonly isExtra?: boolean
  /** Whether there is something to show; by default a value. */
  readonly isFilled?: (node: Node) => boolean
}

const column = (key: Key, rest: Omit<NodeColumn, 'key' | 'name'>): NodeColumn => ({
  key,
  name: t.nodes.columns[key],
  ...rest,
})

const COLUMNS: readonly NodeColumn[] = [
  column('name', { cell: (node) => <NameCell node={node} />, value: (node) => nodeName(node).toLowerCase() }),
  column('status', {
    cell: (node) => (node.status ? <Status {...node.status} /> : <span class="faint">{t.common.none}</span>),
    value: (node) => node.status?.text.toLowerCase() ?? null,
    isExtra: true,
    wideOnly: true,
  }),
  column('id', {
    cell: (node) => <span class="mono">{node.nodeId}</span>,
    value: (node) => node.nodeNum,
    isExtra: true,
    wideOnly: true,
  }),
  column('lastHeard', {
    cell: (node) => <Age at={node.lastHeard} short />,
    value: (node) => node.lastHeard,
    downFirst: true,
    isNumber: true,
  }),
  column('firstHeard', {
    cell: (node) => <Age at={node.firstHeard} short />,
    value: (node) => node.firstHeard,
    downFirst: true,
    isExtra: true,
    isNumber: true,
    wideOnly: true,
  }),
  column('hops', {
    cell: hopsCell,
    value: (node) => node.hopsAway,
    isNumber: true,
    isFilled: (node) => node.viaMqtt || node.hopsAway !== null,
  }),
  column('snr', {
    cell: (node) => <Signal snr={node.snr} />,
    value: (node) => node.snr,
    downFirst: true,
    wideOnly: true,
  }),
  column('battery', {
    cell: (node) => <Battery level={node.deviceMetrics?.batteryLevel} />,
    value: (node) => node.deviceMetrics?.batteryLevel ?? null,
    downFirst: true,
  }),
  column('voltage', {
    cell: (node) => measured(node.deviceMetrics?.voltage, 'V', 2),
    value: (node) => node.deviceMetrics?.voltage ?? null,
    downFirst: true,
    isExtra: true,
    isNumber: true,
    wideOnly: true,
  }),
  column('channelUtilization', {
    cell: (node) => percent(node.deviceMetrics?.channelUtilization),
    value: (node) => node.deviceMetrics?.channelUtilization ?? null,
    downFirst: true,
    wideOnly: true,
    isNumber: true,
  }),
  column('airtime', {
    cell: (node) => percent(node.deviceMetrics?.airUtilTx),
    value: (node) => node.deviceMetrics?.airUtilTx ?? null,
    downFirst: true,
    isExtra: true,
    isNumber: true,
    wideOnly: true,
  }),
  column('altitude', {
    cell: (node) => measured(node.position?.altitude, 'm', 0),
    value: (node) => node.position?.altitude ?? null,
    downFirst: true,
    isExtra: true,
    isNumber: true,
    wideOnly: true,
  }),
  column('hwModel', {
    cell: (node) => <Name of={node.hwModel} show={modelName} />,
    value: (node) => node.hwModel,
    widestOnly: true,
  }),
  column('firmware', {
    cell: (node) => <Name of={node.firmwareVersion} show={firmwareName} />,
    value: (node) => node.firmwareVersion,
    isExtra: true,
    wideOnly: true,
  }),
  column('role', {
    cell: (node) => <Name of={node.role} show={humanize} />,
    value: (node) => node.role,
    wideOnly: true,
  }),
]

export const KEYS: readonly Key[] = COLUMNS.map(({ key }) => key)

const byKey = new Map(COLUMNS.map((one) => [one.key, one]))

export function sortsDownFirst(key: Key): boolean {
  return byKey.get(key)?.downFirst ?? false
}

const isKey = (item: unknown): item is Key => KEYS.some((key) => key === item)
const chosen = preference<readonly Key[]>(
  'node-columns',
  COLUMNS.flatMap(({ key, isExtra }) => (isExtra ? [] : [key])),
  (found) => readList(found, isKey),
)

/** The columns in which at least one of these nodes has something to show. */
export function filledColumns(nodes: readonly Node[]): readonly NodeColumn[] {
  return COLUMNS.filter(({ value, isFilled = (node) => value(node) !== null }) => nodes.some(isFilled))
}

/** Those of the columns that the user chose, in the order of the table. The name is always included. */
export function chosenAmong(filled: readonly NodeColumn[]): readonly NodeColumn[] {
  return filled.filter(({ key }) => key === 'name' || chosen.value.value.includes(key))
}

/** Chooses the columns of the list. */
export function ColumnChoice({ filled }: { filled: readonly NodeColumn[] }) {
  const isOpen = useSignal(false)
  const wanted = chosen.value.value
  return (
    <>
      <button type="button" class="button" onClick={() => (isOpen.value = true)}>
        {t.nodes.chooseColumns}
      </button>
      {isOpen.value && (
        <Dialog title={t.nodes.chooseColumns} onClose={() => (isOpen.value = false)}>
          <p class="faint">{t.nodes.columnsHelp}</p>
          <ul class="checks">
            {COLUMNS.filter(({ key }) => key !== 'name').map(({ key, name }) => (
              <li key={key}>
                <label class="check">
                  <input
                    type="checkbox"
                    checked={wanted.includes(key)}
                    onChange={({ currentTarget: { checked } }) =>
                      chosen.keep(checked ? [...wanted, key] : wanted.filter((one) => one !== key))
                    }
                  />
                  <span>
                    {name}
                    {!filled.some((one) => one.key === key) && <span class="faint"> ({t.nodes.noValues})</span>}
                  </span>
                </label>
              </li>
            ))}
          </ul>
        </Dialog>
      )}
    </>
  )
}

const collator = new Intl.Collator('en', { numeric: true })

/** Unknown values come last in either direction. */
export function sortNodes(found: readonly Node[], by: Key, isDown: boolean): Node[] {
  const value = byKey.get(by)?.value ?? (() => null)
  return found.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)]
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1
    const order = typeof x === 'string' && typeof y === 'string' ? collator.compare(x, y) : Number(x) - Number(y)
    return isDown ? -order : order
  })
}

const time = (at: number | null) => (at === null ? null : new Date(at).toISOString())

/** The columns of a file of the list, under the names of the API and with its units, whatever the reader chose. */
const FILE: Readonly<Record<string, (node: Node) => Value>> = {
  nodeId: (node) => node.nodeId,
  nodeNum: (node) => node.nodeNum,
  longName: (node) => node.longName,
  shortName: (node) => node.shortName,
  nameAltered: (node) => String(node.nameAltered),
  status: ({ status }) => status?.text ?? null,
  statusTime: ({ status }) => time(status?.time ?? null),
  role: (node) => node.role,
  hwModel: (node) => node.hwModel,
  firmwareVersion: (node) => node.firmwareVersion,
  lastHeard: (node) => time(node.lastHeard),
  firstHeard: (node) => time(node.firstHeard),
  hopsAway: (node) => node.hopsAway,
  viaMqtt: (node) => String(node.viaMqtt),
  'snr (dB)': (node) => node.snr,
  'rssi (dBm)': (node) => node.rssi,
  'batteryLevel (%)': ({ deviceMetrics }) => deviceMetrics?.batteryLevel ?? null,
  'voltage (V)': ({ deviceMetrics }) => deviceMetrics?.voltage ?? null,
  'channelUtilization (%)': ({ deviceMetrics }) => deviceMetrics?.channelUtilization ?? null,
  'airUtilTx (%)': ({ deviceMetrics }) => deviceMetrics?.airUtilTx ?? null,
  uptimeSeconds: ({ deviceMetrics }) => deviceMetrics?.uptimeSeconds ?? null,
  'latitude (°)': ({ position }) => position?.latitude ?? null,
  'longitude (°)': ({ position }) => position?.longitude ?? null,
  'altitude (m)': ({ position }) => position?.altitude ?? null,
  precisionBits: ({ position }) => position?.precisionBits ?? null,
}

/** The nodes as rows of the exported file, below its header. */
export function nodeRows(nodes: readonly Node[]): Value[][] {
  const reads = Object.values(FILE)
  return [Object.keys(FILE), ...nodes.map((node) => reads.map((read) => read(node)))]
}

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? t.common.none : `${tenths(value)} %`
}

function measured(value: number | null | undefined, unit: string, digits: number): string {
  return value === null || value === undefined ? t.common.none : measure(value, unit, digits)
}

/** A protocol name in readable form. The tooltip has all of it if the column is too narrow. */
function Name({ of: name, show }: { of: string | null; show(name: string): string }) {
  if (name === null) return <span class="faint">{t.common.none}</span>
  return (
    <span class="clip" dir="auto" title={name}>
      {show(name)}
    </span>
  )
}

/** The tooltip has the whole status if the column is too narrow. */
function Status({ text }: NonNullable<Node['status']>) {
  return (
    <span class="clip" dir="auto" title={plain(text)}>
      <bdi>{plain(text)}</bdi>
    </span>
  )
}

function hopsCell(node: Node) {
  if (node.viaMqtt) return <span class="tag">{t.nodes.mqtt}</span>
  if (node.hopsAway === null) return <span class="faint">{t.common.none}</span>
  return node.hopsAway === 0 ? (
    <span class="good clip" title={t.nodes.direct}>
      {t.nodes.direct}
    </span>
  ) : (
    node.hopsAway
  )
}

function NameCell({ node }: { node: Node }) {
  if (picked.value === null) return <NameOf node={node} />
  return (
    <span class="pickable">
      <Pick node={node} picks={picked.value} />
      <NameOf node={node} />
    </span>
  )
}

/** A box as a button, which the arrow keys of the table reach. */
function Pick({ node, picks }: { node: Node; picks: readonly string[] }) {
  const isPicked = picks.includes(node.nodeId)
  return (
    <button
      type="button"
      class="pick"
      role="checkbox"
      aria-checked={isPicked}
      aria-label={compareTexts.pick(nodeName(node))}
      disabled={!isPicked && picks.length >= MAX_COMPARED}
      onClick={() => togglePick(node.nodeId)}
    >
      <span>{isPicked && <Icon name="check" />}</span>
    </button>
  )
}

function NameOf({ node }: { node: Node }) {
  return (
    <span class="node-name">
      <span class={isActive(node, now.value) ? 'badge live' : 'badge'} aria-hidden="true">
        {shortNameOf(node)}
      </span>
      <a class="row-link" dir="auto" href={href(`/nodes/${node.nodeId}`)} title={longNameOf(node)}>
        {longNameOf(node)}
      </a>
      {isAltered(node) && <span class="mono faint">{node.nodeId}</span>}
      {node.nameAltered && <Mark icon="warning" words={t.nodes.altered} />}
      {node.isFavorite && <Icon name="star" filled />}
      {node.isMuted && <Mark icon="muted" words={t.messages.muted} />}
      {node.signed && <Mark icon="shield" words={t.nodes.signed} tone="good" />}
      {(node.keyMismatch || node.spoofSuspected) && (
        <Mark icon="warning" words={node.spoofSuspected ? t.nodes.spoofed : t.nodes.mismatch} tone="bad" />
      )}
    </span>
  )
}
