import { MAX_RECOVERY_CODE, MAX_TYPED_CODE } from '../../../shared/limits.ts'
import { factorTexts } from '../../strings/people/factors.ts'

/** A field for the code of an authenticator app. */
export const CODE_FIELD = {
  label: factorTexts.code,
  autocomplete: 'one-time-code',
  inputmode: 'numeric',
  pattern: '\\s*[0-9]{6}\\s*',
  maxLength: MAX_TYPED_CODE,
} as const

/** A field for a recovery code. */
export const RECOVERY_FIELD = {
  label: factorTexts.recovery,
  autocomplete: 'off',
  autocapitalize: 'off',
  spellcheck: false,
  maxLength: MAX_RECOVERY_CODE,
} as const
