import type { LetterKind } from '../../../shared/access/letters.ts'
import { said, type Said, type Words } from '../../words/words.ts'
import type { LetterDetails } from './letters.ts'

/** The subject and the plain text of a letter. */
export type LetterText = { readonly subject: string; readonly text: string }

/** What happened to an account, by the action in the audit log. */
export const CHANGES = {
  password_changed: said('The password was changed.'),
  password_reset: said('The password was reset.'),
  second_factor_added: said('A second factor (authenticator app or passkey) was added.'),
  second_factor_removed: said('A second factor (authenticator app or passkey) was removed.'),
  second_factor_reset: said('An administrator removed all second factors.'),
  recovery_codes_created: said('New recovery codes were created; the earlier ones no longer work.'),
  account_linked: said('An account at a provider was linked: it signs in here too.'),
  account_unlinked: said('The account at a provider was unlinked.'),
  user_updated: said('The e-mail address was changed.'),
  alert_destination_updated: said('A destination of alerts was added, or got another address.'),
  alert_destinations_held: said('The destinations of alerts are held until you have looked at them.'),
} as const satisfies Record<string, Said>

type Place = { readonly site: string; readonly link: string | null; readonly words: Words }

/** The text of a letter. `site` is the address of this service, `link` the link in the letter. Usernames are ASCII. */
export function writeText(kind: LetterKind, details: LetterDetails, { site, link, words }: Place): LetterText {
  const { username } = details
  const about = { username, site }
  switch (kind) {
    case 'reset':
      return letter(words.say('Choose a new password for {username}', { username }), [
        words.say('Somebody asked for a new password for your account {username} at {site}.', about),
        where(details, words),
        words.say('This link works once, for one hour:'),
        link,
        words.say('If you did not ask for this, ignore this message: nothing changes.'),
      ])
    case 'verify':
      return letter(words.say('Confirm this address for {username}', { username }), [
        words.say(
          'The account {username} at {site} has this e-mail address. To confirm that it is yours, follow this link within a day:',
          about,
        ),
        link,
        words.say('If you do not know this account, ignore this message.'),
      ])
    case 'invitation':
      return letter(words.say('Your account {username}', { username }), [
        words.say(
          'An administrator has created the account {username} at {site} for you. Choose your password with this link. It works once, for a week:',
          about,
        ),
        link,
        words.say('If you do not expect this, ignore this message.'),
      ])
    case 'sign_in':
      return letter(words.say('Sign-in from a new browser: {username}', { username }), [
        words.say(
          'Somebody signed in to your account {username} at {site} in a browser that had not done so before.',
          about,
        ),
        where(details, words),
        notYou(site, words),
        isLast(details, words),
      ])
    case 'change':
      return letter(words.say('Your account {username} was changed', { username }), [
        words.say('This was changed in your account {username} at {site}:', about),
        (details.actions ?? []).map((action) => `- ${nameOf(action, words)}`).join('\n'),
        where(details, words),
        notYou(site, words),
        isLast(details, words),
      ])
    default:
      return kind satisfies never
  }
}

function letter(subject: string, parts: readonly (string | null)[]): LetterText {
  return { subject, text: `${parts.filter((part) => part !== null && part !== '').join('\n\n')}\n` }
}

function nameOf(action: string, words: Words): string {
  const known = Object.entries(CHANGES).find(([name]) => name === action)?.[1]
  return known === undefined ? action : words.tell(known)
}

function where({ at, ip, browser }: LetterDetails, words: Words): string {
  const lines = [
    at === undefined ? [] : [words.say('When: {time}', { time: words.time(at) })],
    ip == null ? [] : [words.say('Address: {ip}', { ip })],
    browser == null ? [] : [words.say('Browser: {browser}', { browser })],
  ]
  return lines.flat().join('\n')
}

function notYou(site: string, words: Words): string {
  const advice = words.say(
    'If this was you, there is nothing to do. If not, change your password, end the other sessions and look at your second factors, linked accounts, tokens and alert destinations, or ask an administrator:',
  )
  return `${advice}\n${site}/account`
}

function isLast({ isLast: last }: LetterDetails, words: Words): string | null {
  return last === true ? words.say('There were many of these. You get no more of them for a day.') : null
}
