import type { LinkPurpose } from '../../../shared/access/letters.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { findInvited } from './local-invitations.ts'
import { findLink } from './links.ts'
import { LINKS, takeFor } from './password-reset.ts'

/** The purpose of a link, for the page that it opens. Throws `link_invalid`, `rate_limited`. */
export async function lookAtLink(
  ctx: Ctx,
  token: string,
): Promise<{ purpose: LinkPurpose; username: string; email: string; expiresAt: number }> {
  await takeFor(ctx, 'links', LINKS)
  const link = (await findLink(ctx, token, ['reset', 'verify'])) ?? (await findInvited(ctx, token))
  if (link === null) throw new AppError('link_invalid')
  const { purpose, username, email, expiresAt } = link
  return { purpose, username, email, expiresAt }
}
