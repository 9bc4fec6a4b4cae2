import { said } from '../../words/words.ts'
import type { Ports } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'

type Needs = Pick<Ports, 'mail' | 'config'>

/**
 * The address with which links in e-mails begin; null: this service sends no e-mails about accounts. It is never taken
 * from a request, because an attacker who wants the link could set the Host header.
 */
export function siteOfMail({ mail, config }: Needs): string | null {
  return mail === null || config.DISABLE_LOCAL_AUTH ? null : config.PUBLIC_URL
}

/** Throws `account_mail_disabled` unless this service sends e-mails about accounts. */
export function demandAccountMail(needs: Needs): string {
  const site = siteOfMail(needs)
  if (site !== null) return site
  const detail =
    needs.mail === null
      ? said('SMTP_URL is not set, or this runtime cannot send e-mail')
      : said('PUBLIC_URL is not set')
  throw new AppError('account_mail_disabled', detail)
}

/** Logs one line if a mail server is configured, but links in e-mails would have no address. */
export function warnWithoutAddress({ mail, config, log }: Needs & Pick<Ports, 'log'>): void {
  if (mail === null || config.PUBLIC_URL !== null || config.DISABLE_LOCAL_AUTH) return
  log.warn('E-mails about accounts are off (password reset, invitations, notices): PUBLIC_URL is not set')
}
