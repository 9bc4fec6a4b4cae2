import { catalog } from '../../../language.ts'
import { Select } from '../../../parts/form/field.tsx'
import { Group } from '../../../parts/form/labelled.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { alertTexts } from '../../../strings/alerts.ts'
import { t } from '../../../strings.ts'
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
        <Corners points={shape.points} set={(points) => set({ kind: 'polygon', points })} />
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

type Corner = readonly [latitude: number, longitude: number]
type CornersProps = { points: readonly Corner[]; set(points: [number, number][]): void }

/** The corners of a polygon, each in its row. */
function Corners({ points, set }: CornersProps) {
  const all = points.map(([latitude, longitude]): [number, number] => [latitude, longitude])
  return (
    <Group legend={alertTexts.corners} error={points.length < 3 ? alertTexts.cornersWrong : null}>
      {all.map(([latitude, longitude], index) => (
        <fieldset class="corner" key={index}>
          <legend>{alertTexts.corner(index + 1)}</legend>
          <NumberField
            label={alertTexts.latitude}
            value={latitude}
            min={-90}
            max={90}
            set={(next) => set(all.with(index, [next, longitude]))}
          />
          <NumberField
            label={alertTexts.longitude}
            value={longitude}
            min={-180}
            max={180}
            set={(next) => set(all.with(index, [latitude, next]))}
          />
          <button
            type="button"
            class="icon-button"
            aria-label={t.nodes.takeOut(alertTexts.corner(index + 1))}
            onClick={() => set(all.toSpliced(index, 1))}
          >
            <Icon name="close" />
          </button>
        </fieldset>
      ))}
      <div class="actions">
        <button type="button" class="button small" onClick={() => set([...all, all.at(-1) ?? [0, 0]])}>
          <Icon name="plus" />
          {alertTexts.addCorner}
        </button>
      </div>
    </Group>
  )
}
