/**
 * Replaces Leaflet's examination of the browser: all that the page is built for have these abilities. Only what the parts in
 * use read is here.
 */
const { userAgent, platform } = navigator
const isChrome = /chrome/i.test(userAgent)

const browser = {
  any3d: true,
  chrome: isChrome,
  edge: false,
  ie3d: false,
  ielt9: false,
  linux: platform.startsWith('Linux'),
  mac: platform.startsWith('Mac'),
  mobile: 'orientation' in window || /mobile/i.test(userAgent),
  mobileOpera: false,
  msPointer: false,
  passiveEvents: true,
  pointer: true,
  retina: devicePixelRatio > 1,
  safari: !isChrome && /safari/i.test(userAgent),
  touch: true,
  touchNative: 'ontouchstart' in window || 'TouchEvent' in window,
}

// oxlint-disable-next-line import/no-default-export -- the modules of Leaflet import it so
export { browser as default }
