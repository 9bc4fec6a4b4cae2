import { catalog } from '../../language.ts'
import type { Settings } from '../../../app/settings/settings.ts'

export const settingsTexts = catalog('settingsTexts', {
  title: 'Settings',
  saved: 'Settings saved',
  readOnly: 'You can read the settings but not change them.',
  retention: 'How long data is kept',
  retentionHelp: 'Older data is deleted gradually. Accounts, nodes and the audit log are kept.',
  kept: (days: string, reason: 'disk' | 'rows', rows: string) =>
    `Really kept: ${days}. ${reason === 'disk' ? 'The disk has room for' : 'The service keeps at most'} ${rows} rows.`,
  late: (time: string) => `Deletion is ${time} behind.`,
  large: (part: string, limit: string) => `The database fills ${part} of the ${limit} that it can reach.`,
  activity: 'Activity',
  names: {
    telemetryRetentionDays: 'Single measurements',
    telemetryHourlyRetentionDays: 'Hourly summaries of measurements',
    packetRetentionDays: 'Packet log',
    positionRetentionDays: 'Tracks of nodes',
    messageRetentionDays: 'Messages',
    nodeActiveSeconds: 'A node is active if heard in the last',
  } satisfies Partial<Record<keyof Settings, string>>,
  tiles: {
    title: 'Background of the map',
    help: 'Without a background, the map shows lines of latitude and longitude.',
    source: 'Tiles',
    kinds: {
      configured: 'As the server is configured',
      none: 'None',
      url: 'From an address',
      file: 'From the map file of this service',
    },
    privacy: {
      configured: 'MAP_TILE_URL or MAP_PMTILES on the server decides; without either the map asks no other host.',
      none: 'The browsers of your users ask no other host.',
      url: 'The browser of everybody who opens the map asks this host for tiles. It learns their address and which area they look at.',
      file: 'Only this service serves the tiles, from the file in MAP_PMTILES. No other host is asked.',
    },
    url: 'Address of the tiles',
    darkUrl: 'Address for dark pages',
    darkHint: 'Optional. Without it, the same tiles are darkened.',
    maxZoom: 'Highest zoom level that has tiles',
    attribution: 'Attribution',
    attributionHint: 'Shown on the map. Most licences require it.',
    preview: 'Preview',
    save: 'Save the background',
  },
  providers: {
    title: 'Sign-in with OpenID Connect',
    help: 'Register these addresses at the provider, exactly and without a wildcard. Variables of the server set them.',
    unnamed: 'Your organisation',
    issuer: 'Issuer',
    redirectUri: 'Redirect URI',
    signedOutUri: 'Address after signing out',
    lastFailure: 'Last failure',
    test: 'Test',
    testing: 'Testing…',
    testHelp: 'Asks the provider for its description and its keys. Nobody signs in.',
    works: (keys: string) => `The test succeeded. Keys that can check tokens: ${keys}`,
    noSignOut: 'It has no address for signing out: signing out ends only the session here.',
    failures: {
      unreachable: (why: string) =>
        `The provider cannot be reached (${why}). Check the address of the issuer, DNS, firewall and certificate.`,
      refused: (status: string) =>
        `It answers with HTTP status ${status} where its description should be. The issuer must be exactly what the provider calls itself.`,
      invalid: (fields: string) => `Its description is incomplete or not valid (${fields}).`,
      issuerWrong:
        'Its description names another issuer than the configured one. Copy the issuer exactly, including a slash at the end.',
      tooOften: 'It was asked too often. Try again in a minute.',
      keys: 'Its keys cannot be read, or none of them can check a token.',
      token: (why: string) =>
        `It did not accept the code of a sign-in (${why}). Usually it knows another client ID, secret or redirect URI.`,
      idToken: (why: string) => `Its ID token was refused (${why}).`,
      denied: 'The user cancelled the sign-in, or the provider refused it.',
      notAdmitted: (why: string) => `The provider recognised the user, but they may not sign in here (${why}).`,
      other: (why: string) => `The sign-in failed (${why}).`,
    },
  },
  other: 'Other',
  days: 'days',
  minutes: 'minutes',
})
