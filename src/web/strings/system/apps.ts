import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

export const appTexts = catalog('appTexts', {
  button: 'Apps',
  buttonOf: (name: string) => `Apps of ${name}`,
  title: (name: string) => `Apps on ${name}`,
  help: 'A radio takes one app at a time, and this service holds it. Here it opens a port of its own, where Meshtastic apps connect as to the radio (TCP), up to eight at once.',
  port: 'Port',
  host: 'Address of this machine to listen on',
  hostHelp: '127.0.0.1 is this machine alone. For phones enter its address in your network.',
  networks: 'Networks that may connect',
  networksHelp: 'Such as 192.168.1.0/24, one per line. Empty: everybody who reaches the address.',
  viewer: 'Apps see what this user sees, and send as this user',
  viewerHelp: 'Apps do not sign in: whoever reaches the port sees this user’s channels, nodes and direct messages.',
  asMe: (name: string) => `${name} (you)`,
  asPublic: 'Visitors without an account (public access)',
  powers: {
    mayConfigure: 'Apps may change settings',
    mayReboot: 'Apps may restart the radio',
    sharesChannelKeys: 'Apps get channel keys',
    proxiesMqtt: 'An app carries the radio’s MQTT',
  },
  powersHelp: {
    mayConfigure: 'Only if the user may change the configuration. Factory reset is always refused.',
    mayReboot: 'Also to shut it down, from which it comes back only by hand.',
    sharesChannelKeys:
      'Of the channels that the user sees, so that an app can share them. The private key never leaves.',
    proxiesMqtt: 'For a radio whose MQTT client uses the phone. One app at a time does it.',
  },
  open: 'Open the port',
  close: 'Close the port',
  opened: 'The port is open',
  closed: 'The port is closed',
  state: (port: number, clients: number) => `Apps connect on port ${port}, ${quantity(clients, 'app', 'apps')} now`,
  waiting: (port: number) => `Port ${port} accepts no apps now`,
})
