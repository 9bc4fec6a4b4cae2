import { signal } from '@preact/signals'

/**
 * New recovery codes until their owner has kept them; null: none. They are shown only once, so they outlive the page
 * that made them: with a second factor set up, a user who had to do so goes on to another page.
 */
export const newRecoveryCodes = signal<readonly string[] | null>(null)
