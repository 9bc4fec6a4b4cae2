import { signal } from '@preact/signals'
import type { Node } from '../../app/mesh/nodes/nodes.ts'

/** By number: nodes that were loaded because a page names them, where the list of all is not needed. */
export const few = signal<ReadonlyMap<number, Node>>(new Map())
/** By number: the names of senders that came with their messages, so that they need not be loaded. */
export const senderNames = signal<ReadonlyMap<number, string>>(new Map())
/** How many parts of the open page show all nodes. */
export const listUsers = signal(0)
