import { catalog } from '../language.ts'

/** The hint that these pages can be installed like an app. */
export const installTexts = catalog('installTexts', {
  title: 'Install this as an app',
  help: 'It then has its own icon, opens without the browser’s bars, and can show alerts.',
  ios: 'Press “Share” in your browser, then “Add to Home Screen”.',
  install: 'Install',
  later: 'No, thanks',
  gotIt: 'Got it',
})
