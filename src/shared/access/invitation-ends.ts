/** What ends an invitation before it is used or expires. `maker_`: the administrator who made it. */
export const INVITATION_ENDS = ['withdrawn', 'maker_demoted', 'maker_deactivated', 'user_deactivated'] as const
export type InvitationEnd = (typeof INVITATION_ENDS)[number]
