import { type Signal, signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'

/** What is shown in place of all pages, whoever is signed in; null: nothing is. */
export const takeover: Signal<FunctionComponent | null> = signal(null)
