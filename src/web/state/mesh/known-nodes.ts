import { signal } from '@preact/signals'
import type { Node } from '../../../app/mesh/nodes/nodes.ts'

/** Nodes that were loaded only because a page names them, by number. */
export const few = signal<ReadonlyMap<number, Node>>(new Map())
/** Names of senders that came with their messages and need not be loaded, by number. */
export const senderNames = signal<ReadonlyMap<number, string>>(new Map())
/** How many parts of the open page show all nodes. */
export const listUsers = signal(0)
