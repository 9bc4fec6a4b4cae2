import { catalog } from '../../../language.ts'
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { Select } from '../../../parts/form/field.tsx'
import { alertTexts } from '../../../strings/alerts.ts'
import { distance } from '../../../measure.ts'
import { lazyPage } from '../../../parts/list/lazy-page.tsx'
import type { RuleOf, Shape } from '../rule.ts'
import { ALL, MeasureField, NumberField, WatchedFields, who } from './fields.tsx'
import type { FieldsProps, KindView } from './kind.ts'

type Rule = RuleOf<'area'>

const AreaMap = lazyPage(async () => (await import('../area-map.tsx')).AreaMap)

export const areaKind = catalog('areaKind', {
  name: 'A node enters, leaves or moves',
  moves: (who: string, far: string) => `Tell me when ${who} moves more than ${far}`,
  enters: (who: string) => `Tell me when ${who} enters the area`,
  leaves: (who: string) => `Tell me when ${who} leaves the area`,
})

export const area: KindView<Rule> = {
  name: areaKind.name,
  fresh: (common) => ({ kind: 'area', ...common, nodes: ALL, when: 'moves', metres: 500 }),
  sentence: ({ nodes, when, metres }) =>
    when === 'moves' ? areaKind.moves(who(nodes), distance(metres ?? 0)) : areaKind[when](who(nodes)),
  Fields,
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  return (
    <>
      <WatchedFields rule={rule} set={set} />
      <Select
        label={alertTexts.when}
        value={rule.when}
        options={[
          ['moves', alertTexts.areaEvents.moves],
          ['enters', alertTexts.areaEvents.enters],
          ['leaves', alertTexts.areaEvents.leaves],
        ]}
        onChange={(when) =>
          set(
            when === 'moves'
              ? { when, metres: rule.metres ?? 500, shape: null }
              : { when, shape: rule.shape ?? CIRCLE },
          )
        }
      />
      {rule.when === 'moves' ? (
        <MeasureField
          label={alertTexts.distance}
          unit="m"
          value={rule.metres}
          min={10}
          set={(metres) => set({ metres })}
        />
      ) : (
        <ShapeFields shape={rule.shape ?? CIRCLE} set={(shape) => set({ shape })} />
      )}
    </>
  )
}

const CIRCLE = { kind: 'circle' as const, latitude: 0, longitude: 0, metres: 1000 }

/** A circle by its centre, or a polygon by its corners. */
function ShapeFields({ shape, set }: { shape: Shape; set(shape: Shape): void }) {
  const id = useId()
  const problem = useSignal<string | null>(null)
  const begin = (kind: Shape['kind']): Shape => (kind === 'circle' ? CIRCLE : { kind, points: [] })
  return (
    <>
      <Select
        label={alertTexts.shape}
        value={shape.kind}
        options={[
          ['circle', alertTexts.shapes.circle],
          ['polygon', alertTexts.shapes.polygon],
        ]}
        onChange={(kind) => set(begin(kind))}
      />
      <AreaMap shape={shape} set={set} />
      {shape.kind === 'polygon' ? (
        <div class="field">
          <label for={id}>{alertTexts.corners}</label>
          <textarea
            id={id}
            key={showCorners(shape.points)}
            ref={(field) => field?.setCustomValidity(shape.points.length < 3 ? alertTexts.cornersWrong : '')}
            rows={5}
            required
            aria-describedby={`${id}-about`}
            aria-invalid={problem.value !== null}
            defaultValue={showCorners(shape.points)}
            onChange={(event) => {
              const points = readCorners(event.currentTarget.value)
              problem.value = points === null ? alertTexts.cornersWrong : null
              event.currentTarget.setCustomValidity(problem.value ?? '')
              if (points !== null) set({ kind: 'polygon', points })
            }}
          />
          <div id={`${id}-about`} class="about">
            {problem.value === null ? alertTexts.cornersHint : <span class="bad">{problem.value}</span>}
          </div>
        </div>
      ) : (
        <>
          <NumberField
            label={alertTexts.latitude}
            value={shape.latitude}
            min={-90}
            max={90}
            set={(latitude) => set({ ...shape, latitude })}
          />
          <NumberField
            label={alertTexts.longitude}
            value={shape.longitude}
            min={-180}
            max={180}
            set={(longitude) => set({ ...shape, longitude })}
          />
          <MeasureField
            label={alertTexts.radius}
            unit="m"
            value={shape.metres}
            min={10}
            set={(metres) => set({ ...shape, metres })}
          />
        </>
      )}
    </>
  )
}

/** Corners as users write them: latitude and longitude, one corner per line. */
function showCorners(points: readonly (readonly [number, number])[]): string {
  return points.map(([latitude, longitude]) => `${latitude}, ${longitude}`).join('\n')
}

/** Null: fewer than three corners, or invalid coordinates. */
function readCorners(text: string): [number, number][] | null {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const points = lines.map((line): [number, number] | null => {
    const found = /^\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*(-?\d{1,3}(?:\.\d+)?)\s*$/.exec(line)
    const [latitude, longitude] = [Number(found?.[1]), Number(found?.[2])]
    return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? [latitude, longitude] : null
  })
  const good = points.filter((point) => point !== null)
  return good.length === lines.length && good.length >= 3 ? good : null
}
