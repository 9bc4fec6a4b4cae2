import { useSignal } from '@preact/signals'
import { placeAddress } from '../../../../shared/copies.ts'
import { api, send } from '../../../api.ts'
import { Age } from '../../../parts/age.tsx'
import { CopyText } from '../../../parts/copy.tsx'
import { Actions, Select } from '../../../parts/form/field.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { Card, Facts } from '../../../parts/page.tsx'
import { useAction } from '../../../state/load.ts'
import { copyTexts } from '../../../strings/system/copies.ts'
import type { CopiesState, Place } from './place.ts'

/** How to get a copy back, and when somebody last did. */
export function Drill({ state, reload }: { state: CopiesState; reload(): Promise<void> }) {
  const noting = useAction()
  const chosen = useSignal<string | null>(null)
  const places = state.places.filter(({ settings }) => settings !== null)
  const [first] = places
  const place = places.find(({ id }) => String(id) === chosen.value) ?? first
  if (place === undefined) return null
  const note = () =>
    noting.run(async () => {
      await send(api.system.copies.drill.$post())
      say(copyTexts.drillNoted)
      await reload()
    })
  const newest = state.copies.find((copy) => copy.placeId === place.id && copy.state === 'made')?.name
  const { drill } = state
  return (
    <Card title={copyTexts.drill} help={copyTexts.drillHelp}>
      <div class="stack">
        {places.length > 1 && (
          <Select
            label={copyTexts.place}
            value={String(place.id)}
            options={places.map(({ id, name }) => [String(id), name] as const)}
            onChange={(next) => (chosen.value = next)}
          />
        )}
        {linesOf(place, newest ?? '<backup>').map((line) => (
          <CopyText key={line} text={line} label={copyTexts.drill} />
        ))}
        <Facts
          entries={[
            [
              copyTexts.lastDrill,
              drill === null ? (
                <span class="bad">{copyTexts.drillNever}</span>
              ) : (
                <>
                  <Age at={drill.at} /> {copyTexts.drillBy(drill.by)}
                </>
              ),
            ],
          ]}
        />
        <Failure error={noting.error.value} />
        <Actions>
          <button type="button" class="button" disabled={noting.busy.value} onClick={() => void note()}>
            {copyTexts.drillDone}
          </button>
        </Actions>
      </div>
    </Card>
  )
}

/** In one quoted word of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

function linesOf({ kind, settings }: Place, name: string): string[] {
  const at = settings ?? {}
  const user = kind === 's3' ? at['accessKeyId'] : at['username']
  const credentials =
    kind === 'folder'
      ? ''
      : ` COPIES_USER=${quoted(typeof user === 'string' ? user : '')} COPIES_PASSWORD=${quoted('…')}`
  const ca = typeof at['ca'] === 'string' ? ' COPIES_CA=ca.pem' : ''
  return [
    `export DATA_DIR=./restored COPIES_PLACE=${quoted(placeAddress(kind, at))}${credentials}${ca}`,
    `npx mesh-monitoring-service cli copies fetch ${name} --identity key.txt`,
    `RESTORE_FROM_BACKUP=${name} npx mesh-monitoring-service`,
  ]
}
