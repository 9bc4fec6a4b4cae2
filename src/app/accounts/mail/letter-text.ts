import type { LetterKind } from '../../../shared/access/letters.ts'
import type { LetterDetails } from './letters.ts'

/** The subject and the plain text of a letter. */
export type LetterText = { readonly subject: string; readonly text: string }

/** What happened to an account, by the action in the audit log. */
export const CHANGES = {
  password_changed: 'The password was changed.',
  password_reset: 'The password was reset.',
  second_factor_added: 'A second factor (authenticator app or passkey) was added.',
  second_factor_removed: 'A second factor (authenticator app or passkey) was removed.',
  second_factor_reset: 'An administrator removed all second factors.',
  recovery_codes_created: 'New recovery codes were created; the earlier ones no longer work.',
  account_linked: 'An account at a provider was linked: it signs in here too.',
  account_unlinked: 'The account at a provider was unlinked.',
  user_updated: 'The e-mail address was changed.',
  alert_destination_updated: 'A destination of alerts was added, or got another address.',
  alert_destinations_held: 'The destinations of alerts are held until you have looked at them.',
} as const

/** The text of a letter. `site` is the address of this service, `link` the link in the letter. Usernames are ASCII. */
export function writeText(kind: LetterKind, details: LetterDetails, site: string, link: string | null): LetterText {
  const { username } = details
  const account = `your account ${username} at ${site}`
  const unwanted = 'If you did not ask for this, ignore this message: nothing changes.'
  switch (kind) {
    case 'reset':
      return letter(`Choose a new password for ${username}`, [
        `Somebody asked for a new password for ${account}.`,
        where(details),
        `This link works once, for one hour:`,
        link,
        unwanted,
      ])
    case 'verify':
      return letter(`Confirm this address for ${username}`, [
        `The account ${username} at ${site} has this e-mail address. To confirm that it is yours, follow this link within a day:`,
        link,
        'If you do not know this account, ignore this message.',
      ])
    case 'invitation':
      return letter(`Your account ${username}`, [
        `An administrator has created the account ${username} at ${site} for you. Choose your password with this link. It works once, for a week:`,
        link,
        'If you do not expect this, ignore this message.',
      ])
    case 'sign_in':
      return letter(`Sign-in from a new browser: ${username}`, [
        `Somebody signed in to ${account} in a browser that had not done so before.`,
        where(details),
        notYou(site),
        isLast(details),
      ])
    case 'change':
      return letter(`Your account ${username} was changed`, [
        `This was changed in ${account}:`,
        (details.actions ?? []).map((action) => `- ${wordsOf(action)}`).join('\n'),
        where(details),
        notYou(site),
        isLast(details),
      ])
    default:
      return kind satisfies never
  }
}

function letter(subject: string, parts: readonly (string | null)[]): LetterText {
  return { subject, text: `${parts.filter((part) => part !== null && part !== '').join('\n\n')}\n` }
}

function wordsOf(action: string): string {
  return Object.entries(CHANGES).find(([name]) => name === action)?.[1] ?? action
}

function where({ at, ip, browser }: LetterDetails): string {
  const lines = [
    at === undefined ? [] : [`When: ${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`],
    ip == null ? [] : [`Address: ${ip}`],
    browser == null ? [] : [`Browser: ${browser}`],
  ]
  return lines.flat().join('\n')
}

function notYou(site: string): string {
  return `If this was you, there is nothing to do. If not, change your password, end the other sessions and look at your second factors, linked accounts, tokens and alert destinations, or ask an administrator:\n${site}/account`
}

function isLast({ isLast: last }: LetterDetails): string | null {
  return last === true ? 'There were many of these. You get no more of them for a day.' : null
}
