import { type ReadonlySignal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { ApiError } from '../../../api.ts'
import { dateTime, plain } from '../../../format.ts'
import { RangeControl } from '../../../parts/form/range-control.tsx'
import { Select } from '../../../parts/form/field.tsx'
import { Copyable } from '../../../parts/copy.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { currentUrl, href, place, setQuery } from '../../../router.ts'
import { activeMs, BROADCAST, nameOf, type Node, nodeName } from '../../../state/mesh/nodes.ts'
import { type Range, rangeKey, rangeQuery, readRange, spanOf, type TimeSpan } from '../../../state/range.ts'
import { can } from '../../../state/session.ts'
import { playbackTexts } from '../../../strings/mesh/playback.ts'
import { useSame } from '../drawing.ts'
import type { MeshMap } from '../view.ts'
import { readMoment, sliderStep, SPEEDS, usualSpeed } from './clock.ts'
import { createHistory, type Happening, type History } from './history.ts'
import { loadHistory } from './load.ts'
import './playback.css'
import { createPlayer, type Player } from './player.ts'
import { createTip } from '../layers/tip.ts'

const USUAL = '24h'
const MAX_HAPPENINGS = 30

type Props = { map: MeshMap; nodes: readonly Node[]; onClose(): void }

/** Plays a range of the past on the map. The address names the range, and the moment if it is paused. */
export function PlaybackPanel({ map, nodes, onClose }: Props) {
  const named = useRef<Range | null>(null)
  const span = useSpan(named)
  const speed = useSignal(usualSpeed(span))
  const isPlaying = useSignal(false)
  const at = useSignal(span.from)
  const isLoading = useSignal(true)
  const isCut = useSignal(false)
  const error = useSignal<ApiError | null>(null)
  const history = useSignal<History | null>(null)
  /** A changed number says that more is known. */
  const version = useSignal(0)
  const player = useRef<Player | null>(null)
  const first = useRef<HTMLButtonElement>(null)
  const play = (isOn: boolean) => {
    isPlaying.value = isOn
    if (!isOn) player.current?.pause()
    else {
      if (at.peek() >= span.to) player.current?.seek(span.from)
      player.current?.play(speed.peek())
    }
  }
  /** A paused moment stands in the address. */
  const keep = () => setQuery({ ...rangeQuery(span), at: String(Math.round(at.peek())) })
  const toggle = () => {
    play(!isPlaying.peek())
    if (!isPlaying.peek()) keep()
  }
  const seek = (to: number) => {
    play(false)
    player.current?.seek(to)
    keep()
  }

  useEffect(() => {
    const made = createPlayer(map.parts, {
      onTime: (time) => (at.value = time),
      onEnd: () => (isPlaying.value = false),
    })
    player.current = made
    first.current?.focus()
    const stopPointing = nameWhatIsPointedAt(map, made)
    return () => {
      stopPointing()
      made.stop()
    }
  }, [map])

  useEffect(() => {
    let isGone = false
    let isStarted = false
    const past = createHistory(span, nodes, { activeMs: activeMs.peek(), isHeardKnown: can('info', 'read') })
    const moment = readMoment(place.peek().query.get('at'), span)
    const show = () => {
      past.settle()
      version.value++
      if (isStarted) return player.current?.redraw()
      isStarted = true
      history.value = past
      player.current?.show(past)
      player.current?.seek(moment ?? span.from)
      if (moment === null) play(true)
    }
    speed.value = usualSpeed(span)
    play(false)
    isLoading.value = true
    isCut.value = false
    error.value = null
    const load = async () => {
      try {
        const isWhole = await loadHistory(past, () => {
          if (!isGone) show()
          return !isGone
        })
        if (!isGone) isCut.value = !isWhole
      } catch (cause) {
        if (!(cause instanceof ApiError)) throw cause
        if (!isGone) error.value = cause
      } finally {
        if (!isGone) isLoading.value = false
      }
    }
    load().catch(console.error)
    return () => {
      isGone = true
    }
  }, [span])

  const close = () => {
    setQuery({ ...rangeQuery(named.current), at: '' })
    onClose()
  }
  const happenings = useComputed(() => {
    const past = version.value === 0 ? null : history.value
    return past?.latest(at.value, MAX_HAPPENINGS) ?? []
  })
  const isEmpty = !isLoading.value && error.value === null && history.value?.isEmpty() === true
  return (
    <section
      class="map-playback"
      aria-label={playbackTexts.title}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close()
        else if (event.key === ' ' && event.target instanceof HTMLInputElement && event.target.type === 'range') {
          event.preventDefault()
          toggle()
        }
      }}
    >
      <div class="playback-bar">
        <button ref={first} type="button" class="button primary" onClick={toggle}>
          {isPlaying.value ? playbackTexts.pause : playbackTexts.play}
        </button>
        <label class="playback-slider">
          <span class="sr-only">{playbackTexts.moment}</span>
          <Slider {...{ span, at, seek }} />
        </label>
        <button type="button" class="button" onClick={close}>
          {playbackTexts.close}
        </button>
      </div>
      <p class="playback-time">
        <Clock at={at} />
        {isLoading.value && <span class="faint"> · {playbackTexts.loading}</span>}
      </p>
      <Failure error={error.value} />
      {isCut.value && <p role="status">{playbackTexts.cut}</p>}
      {isEmpty && <p role="status">{playbackTexts.none}</p>}
      <div class="toolbar">
        <Select
          label={playbackTexts.speed}
          value={String(speed.value)}
          options={SPEEDS.map((n) => [String(n), playbackTexts.times(n)] as const)}
          onChange={(value) => {
            speed.value = SPEEDS.find((each) => String(each) === value) ?? speed.peek()
            if (isPlaying.peek()) player.current?.play(speed.peek())
          }}
        />
        <RangeControl fallback={USUAL} />
      </div>
      {!isPlaying.value && <MomentLink span={span} at={at} />}
      <h2>{playbackTexts.happened}</h2>
      <Happenings happenings={happenings} />
    </section>
  )
}

// The moment changes a few times a second: only these are rendered then.
type At = { readonly at: ReadonlySignal<number> }

function Slider({ span, at, seek }: At & { span: TimeSpan; seek(to: number): void }) {
  return (
    <input
      type="range"
      min={span.from}
      max={span.to}
      step={sliderStep(span)}
      value={at.value}
      aria-valuetext={dateTime(at.value)}
      onInput={(event) => seek(Math.min(span.to, Number(event.currentTarget.value)))}
    />
  )
}

function Clock({ at }: At) {
  return <time dateTime={new Date(at.value).toISOString()}>{dateTime(at.value)}</time>
}

function Happenings({ happenings }: { happenings: ReadonlySignal<readonly Happening[]> }) {
  const found = useSame(happenings.value)
  // The same list again is not compared.
  return useMemo(
    () => (
      <ul class="playback-list" tabIndex={0} aria-label={playbackTexts.happened}>
        {found.length === 0 && <li class="faint">{playbackTexts.nothing}</li>}
        {found.map((happening) => (
          <li key={keyOf(happening)} class={happening.kind}>
            <span class="faint nowrap">{dateTime(happening.t)}</span> <bdi>{told(happening)}</bdi>
          </li>
        ))}
      </ul>
    ),
    [found],
  )
}

/** The range of the address. One that ends now stays where it was when it was chosen. */
function useSpan(named: { current: Range | null }): TimeSpan {
  const { range } = readRange(place.value.query, USUAL)
  const held = useRef<TimeSpan | null>(null)
  const key = rangeKey(range)
  return useMemo(() => {
    const before = held.current
    if (before !== null && key === rangeKey(before)) return before
    named.current = range === USUAL ? null : range
    const { from, to } = spanOf(range, Date.now())
    return (held.current = { from: Math.round(from), to: Math.round(to) })
  }, [key])
}

/** The address of this moment, to be copied. */
function MomentLink({ span, at }: At & { span: TimeSpan }) {
  const query = new URLSearchParams(currentUrl.value.split('?')[1])
  const asked = { ...rangeQuery(span), at: String(Math.round(at.value)) }
  for (const [name, value] of Object.entries(asked)) {
    if (value === '') query.delete(name)
    else query.set(name, value)
  }
  const link = new URL(href(`/map?${query}`), location.origin).href
  return (
    <p class="playback-link">
      <span class="faint">{playbackTexts.link}</span> <Copyable text={link} name={playbackTexts.link} />
    </p>
  )
}

/** The name of the node under the mouse. */
function nameWhatIsPointedAt({ parts: { map } }: MeshMap, player: Player): () => void {
  const tip = createTip(map)
  const box = map.getContainer()
  const point = (event: PointerEvent) => {
    const { left, top } = box.getBoundingClientRect()
    const [x, y] = [event.clientX - left, event.clientY - top]
    const node = player.nodeAt(x, y)
    if (node === null) tip.hide()
    else tip.show(map.containerPointToLatLng([x, y]), plain(nodeName(node)))
  }
  box.addEventListener('pointermove', point)
  return () => {
    box.removeEventListener('pointermove', point)
    tip.hide()
  }
}

function keyOf(happening: Happening): string {
  return happening.kind === 'text'
    ? `text ${happening.message.id}`
    : `${happening.kind} ${happening.node.nodeNum} ${happening.t}`
}

function told(happening: Happening): string {
  if (happening.kind !== 'text') {
    const name = nodeName(happening.node)
    return happening.kind === 'back' ? playbackTexts.back(name) : playbackTexts.silent(name, dateTime(happening.since))
  }
  const { fromNodeNum, fromNodeId, toNodeNum, toNodeId, text } = happening.message
  const name = nameOf(fromNodeNum, fromNodeId)
  return toNodeNum === BROADCAST
    ? playbackTexts.says(name, text)
    : playbackTexts.saysTo(name, nameOf(toNodeNum, toNodeId), text)
}
