import * as z from 'zod'
import { bytesOf } from '../../../base/base64.ts'

/** Printable ASCII of a token. */
export const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x21-\x7e]+$/, 'letters, digits and signs without spaces')

/** A URL for requests; credentials belong in their own fields. */
export const address = z
  .string()
  .max(2048)
  .refine((value) => {
    const url = URL.parse(value)
    return (
      url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === ''
    )
  }, 'an http or https URL without user name and fragment')
  .transform((value) => new URL(value).href)

/** The base URL of a service, without a query. */
export const server = address
  .refine((value) => new URL(value).search === '', 'no query')
  .transform((value) => value.replace(/\/+$/, ''))

export const base64Of = (bytes: number) =>
  z
    .string()
    .max(200)
    .refine((value) => bytesOf(value)?.length === bytes, `base64url of ${bytes} bytes`)
