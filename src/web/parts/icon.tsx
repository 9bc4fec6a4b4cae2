/** 24×24 line drawings. */
const PATHS = {
  dashboard: 'M4 13h7V4H4v9Zm0 7h7v-4H4v4Zm9 0h7v-9h-7v9Zm0-16v4h7V4h-7Z',
  map: 'm9 4-6 2.5v13.5l6-2.5 6 2.5 6-2.5V4l-6 2.5L9 4Zm0 0v13.5M15 6.5V20',
  nodes:
    'M12 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm0 0v8m-4.2-5.3a6.5 6.5 0 0 1 0-9.4m8.4 0a6.5 6.5 0 0 1 0 9.4M5 17.7a10.7 10.7 0 0 1 0-15.4m14 0a10.7 10.7 0 0 1 0 15.4',
  messages: 'M4 5h16v11H9l-5 4V5Zm4 4h8m-8 3h5',
  settings:
    'M4 7h9m5 0h2M4 17h2m5 0h9M15.5 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-7 10a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  users:
    'M9 11.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20c.5-3.5 3-5.5 6.5-5.5s6 2 6.5 5.5M16 5a3.5 3.5 0 0 1 0 6.5m2 3.200c1.9.7 3.1 2.5 3.5 5.3',
  audit: 'M6 3h9l4 4v14H6V3Zm9 0v4h4M9.5 12h6m-6 4h6',
  backups:
    'M12 8c4.4 0 8-1.1 8-2.5S16.4 3 12 3 4 4.1 4 5.5 7.6 8 12 8Zm8-2.5v13c0 1.4-3.6 2.5-8 2.5s-8-1.1-8-2.5v-13M4 12c0 1.4 3.6 2.5 8 2.5s8-1.1 8-2.5',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm-8 8.5c.6-3.7 3.7-6 8-6s7.4 2.3 8 6',
  packets: 'M4 8l8-4 8 4v8l-8 4-8-4V8Zm0 0 8 4 8-4m-8 4v8',
  routes:
    'M6 20a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM18 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-9.5 8.5H15a2.75 2.75 0 0 0 0-5.5H9a2.75 2.75 0 0 1 0-5.5h6.5',
  neighbors:
    'M12 7a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM5 21.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm14 0a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM10.8 6.7 6.3 16.8m6.9-10.1 4.5 10.1M7.500 19h9',
  boards: 'M4 20V4m0 16h16M7.5 15l3.5-5 3 3 5-7',
  automation: 'M13 3 5 13.5h6L10 21l8.500-10.5H12.500L13 3Z',
  radio: 'M7 9h10v12H7V9Zm0 0L16 3m-6 10h4m-4 4h.01m3.990 0h.01',
  bell: 'M6 16V10.500a6 6 0 0 1 12 0V16l1.500 2h-15L6 16Zm4 4.500a2.200 2.200 0 0 0 4 0',
  muted: 'M6 16V10.500a6 6 0 0 1 12 0V16l1.500 2h-15L6 16Zm4 4.500a2.200 2.200 0 0 0 4 0M3.500 3.500l17 17',
  menu: 'M4 7h16M4 12h16M4 17h16',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13Zm4.7-1.800L20 20',
  star: 'm12 3.5 2.6 5.6 6.1.7-4.5 4.2 1.2 6-5.4-3-5.4 3 1.2-6-4.5-4.2 6.1-.7L12 3.5Z',
  back: 'M15 5l-7 7 7 7',
  next: 'm9 5 7 7-7 7',
  close: 'M6 6l12 12M18 6 6 18',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  plus: 'M12 5v14M5 12h14',
  warning: 'M12 4 2.5 20h19L12 4Zm0 6v5m0 2.5v.01',
  download: 'M12 4v11m-4.5-4.5L12 15l4.5-4.5M4 20h16',
  copy: 'M9 9h11v11H9V9Zm-4 6H4V4h11v1',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12ZM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z',
  shield:
    'M12 3 4.5 6v5.500c0 4.500 3 8 7.500 9.500 4.500-1.500 7.500-5 7.500-9.500V6L12 3Zm-3.500 8.800 2.500 2.500 4.500-4.800',
  lock: 'M6 11h12v9H6v-9Zm2.5 0V7.5a3.5 3.5 0 0 1 7 0V11',
  send: 'M4 12 20 4l-5 16-3.5-6.5L4 12Zm7.5 1.5L20 4',
  reply: 'M10 6 4 12l6 6m-6-6h9c4 0 7 2 7 7',
  react: 'M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17ZM8.5 14c.8 1.3 2 2 3.5 2s2.7-.7 3.5-2M9 9.5v.01m6-.01v.01',
  info: 'M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17Zm0-9.5v5m0-8.5v.01',
  down: 'M12 5v14m-6-6 6 6 6-6',
  up: 'M12 19V5m-6 6 6-6 6 6',
  clock: 'M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17ZM12 7v5l3 2',
  checks: 'm2 12.5 4.5 4.5L15 8m-3.5 8 1 1L21 8',
  signOut: 'M14 4H5v16h9m-4-8h11m-4-4 4 4-4 4',
  link: 'M5 15a9 9 0 0 1 0-6m14 0a9 9 0 0 1 0 6M8.5 13.5a4 4 0 0 1 0-3m7 0a4 4 0 0 1 0 3M12 12v.01',
} as const

export type IconName = keyof typeof PATHS

/** They point where a text goes on, or where it began. */
const POINTING: readonly IconName[] = ['back', 'next', 'reply', 'send', 'signOut']

/** Decorative: text beside it, or the label of its button, gives the meaning. */
export function Icon({ name, filled = false }: { name: IconName; filled?: boolean }) {
  return (
    <svg
      class={POINTING.includes(name) ? 'icon pointing' : 'icon'}
      viewBox="0 0 24 24"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} fill={filled ? 'currentColor' : 'none'} />
    </svg>
  )
}
