import { signal } from '@preact/signals'

/**
 * New recovery codes until their owner has stored them; null: none. They are shown only once and must survive a change
 * of page: a user who had to set up a second factor continues to another page.
 */
export const newRecoveryCodes = signal<readonly string[] | null>(null)
