export const scopeTexts = {
  title: 'Channels and direct messages',
  help: 'Narrows the permissions: whatever is not ticked here does not exist for this user.',
  channels: 'Channels',
  all: 'All channels',
  chosen: 'Chosen channels',
  allHelp: 'Sees what comes on any channel, also on those that are added later.',
  chosenHelp:
    'Sees messages, positions and measurements of the ticked channels only. Reading and writing still need the permission for the area.',
  what: 'Where',
  read: 'Read',
  write: 'Write',
  direct: 'Direct messages',
  directHelp: 'Between any nodes, those of your radios included.',
} as const
