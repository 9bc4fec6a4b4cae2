import { catalog } from '../../language.ts'
export const scopeTexts = catalog('scopeTexts', {
  title: 'Channels and direct messages',
  help: 'Narrows the permissions: channels that are not ticked are hidden from this user.',
  channels: 'Channels',
  all: 'All channels',
  chosen: 'Chosen channels',
  allHelp: 'Sees messages and data of all channels, including those added later.',
  chosenHelp:
    'Sees messages, positions and measurements of the ticked channels only. Reading and writing still need the permission for the area.',
  what: 'Where',
  read: 'Read',
  write: 'Write',
  direct: 'Direct messages',
  directHelp: 'Everything that is sent to one node: texts, positions, measurements and waypoints, between any nodes.',
})
