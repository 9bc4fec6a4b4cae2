import { catalog } from '../../language.ts'

export const playbackTexts = catalog('playbackTexts', {
  title: 'Playback',
  play: 'Play',
  pause: 'Pause',
  moment: 'Moment',
  speed: 'Speed',
  times: (n: number) => `${n} ×`,
  link: 'Link to this moment',
  close: 'Close',
  loading: 'Loading the rest…',
  cut: 'More is stored of this time than can be played at once. Choose a shorter time to see all of it.',
  none: 'Nothing is stored of this time.',
  happened: 'What happened',
  nothing: 'Nothing yet.',
  silent: (name: string, time: string) => `${name} has fallen silent, last heard ${time}`,
  back: (name: string) => `${name} is heard again`,
  says: (name: string, text: string) => `${name}: ${text}`,
  saysTo: (name: string, other: string, text: string) => `${name} to ${other}: ${text}`,
})
