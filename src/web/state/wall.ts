import { signal } from '@preact/signals'
import { PAGES } from '../../shared/pages.ts'
import { navigate, place, setQuery } from '../router.ts'
import { can } from './session.ts'

/** Whether the pages are shown on a wall: large, without controls, one after the other. */
export const isWall = signal(false)

/** How long each page is shown. */
const TURN_MS = 20_000

function pages(): readonly string[] {
  return [
    ...(can('dashboard', 'read') ? ['/'] : []),
    ...(can('nodes', 'read') ? ['/map', '/nodes'] : []),
    ...(can('messages', 'read') ? ['/messages'] : []),
  ]
}

/** The address of a page on a wall: nobody can switch on the lines of the map there. */
function onWall(path: string): string {
  return path === '/map' ? '/map?wall=1&links=1' : `${path}?wall=1`
}

/** Shows the pages on a wall until somebody presses Escape or the button; the address `?wall=1` does so at once. */
export function startWall(): void {
  isWall.value = true
}

/** Changes the pages and keeps the screen awake; returns a function that ends both. A board stays. */
export function keepWall(): () => void {
  const isBoard = PAGES.board.test(place.peek().path)
  const all = isBoard ? [] : pages()
  const turn = () => {
    const next = all[(all.indexOf(place.peek().path) + 1) % all.length]
    if (next !== undefined) navigate(onWall(next), { replace: true })
  }
  if (place.peek().path === '/map') setQuery({ links: '1' })
  if (isBoard) setQuery({ wall: '1' })
  const timer = setInterval(turn, TURN_MS)
  const leave = ({ key }: KeyboardEvent) => {
    if (key === 'Escape') isWall.value = false
  }
  let lock: WakeLockSentinel | null = null
  let isOver = false
  const wake = async () => {
    if (document.visibilityState !== 'visible' || !('wakeLock' in navigator)) return
    try {
      lock = await navigator.wakeLock.request('screen')
      if (isOver) await lock.release()
    } catch {
      // Refused, for example with a low battery: the screen turns off as configured.
    }
  }
  // A page that was hidden has lost its lock.
  const look = () => void wake()
  look()
  addEventListener('keydown', leave)
  document.addEventListener('visibilitychange', look)
  document.documentElement.classList.add('wall')
  // Only now are its styles loaded. Without the service the pages keep their own.
  import('../styles/wall.css').catch(() => {})
  return () => {
    isOver = true
    clearInterval(timer)
    removeEventListener('keydown', leave)
    document.removeEventListener('visibilitychange', look)
    document.documentElement.classList.remove('wall')
    setQuery({ wall: '', links: '' })
    void lock?.release()
  }
}
