import { existsSync } from 'node:fs'

const WITHOUT_WINDOWS = '/usr/bin/chromium-headless-shell'

/** The installed browser: preferably the build without windows, which takes a third less processor time. */
export const CHROMIUM_PATH = existsSync(WITHOUT_WINDOWS) ? WITHOUT_WINDOWS : '/usr/bin/chromium'
