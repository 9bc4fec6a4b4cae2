import * as z from 'zod'

// Fields of many answers, each described once.

export const timeField = z.int().meta({
  id: 'Time',
  description: 'Milliseconds since the Unix epoch',
  examples: [1_763_800_000_000],
})

export const nodeNumField = z.int().meta({
  id: 'NodeNum',
  description: 'Number of a node, unsigned 32 bits; 4294967295 as a recipient means broadcast',
  examples: [2_698_706_945],
})

export const nodeIdField = z.string().meta({
  id: 'NodeId',
  description: 'Number of a node as text: `!` and eight hexadecimal digits',
  examples: ['!a0db0001'],
})
