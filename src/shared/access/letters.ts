/** What an e-mail about an account is about. */
export const LETTER_KINDS = ['reset', 'verify', 'invitation', 'sign_in', 'change'] as const
export type LetterKind = (typeof LETTER_KINDS)[number]

/** What the link in such an e-mail is for. */
export const LINK_PURPOSES = ['reset', 'verify', 'invitation'] as const
export type LinkPurpose = (typeof LINK_PURPOSES)[number]
