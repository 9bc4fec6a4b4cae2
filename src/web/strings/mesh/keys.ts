import { catalog } from '../../language.ts'

/** What is wrong with public keys, and what to do. */
export const keyTexts = catalog('keyTexts', {
  help: {
    any: 'These nodes have a public key that is weak, belongs to several nodes, or is contradicted. Do not send them anything confidential before that is settled.',
    shared:
      'Several nodes have the same public key: each can read the direct messages to the others and sign in their name. Their owners should each create a new key, and not restore one radio’s copy to another.',
    weak: 'Old firmware made these keys with too little randomness, so others have them too. The owners should update the firmware and create a new key.',
    changed:
      'Somebody announced another key in the name of these nodes. Ask each owner which key is right, then accept it on the page of the node.',
  },
  holders: (n: number) => `Nodes with this key, silent ones included: ${n}`,
  groups: 'Who shares a key',
  moreGroups: (n: number) => `More shared keys: ${n}`,
  sharedTitle: 'Key of several nodes',
  sharedHelp:
    'Other nodes have the same public key. Each of them can read direct messages to this node and sign in its name. Their owners should each create a new key.',
})
