import { catalog } from '../../language.ts'

/** A traceroute to all nodes in direct range. */
export const directTexts = catalog('directRange', {
  title: 'Who hears the radio directly?',
  help: 'One request that no node repeats. Every node that hears it directly answers with its signal, from firmware 2.6 on. Many answers at once can collide: ask again to find more.',
  ask: 'Ask all in range',
  asked: 'Request queued. The answers arrive within a minute.',
  everybody: 'everybody in direct range',
  node: 'Node',
  towards: 'It hears the radio',
  back: 'The radio hears it',
  none: 'No answer yet.',
  list: 'Nodes that answered',
})
