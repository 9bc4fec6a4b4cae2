/** The subjects of e-mails about accounts. */
export const LETTER_KINDS = ['reset', 'verify', 'invitation', 'sign_in', 'change'] as const
export type LetterKind = (typeof LETTER_KINDS)[number]

/** The purposes of the links in such e-mails. */
export const LINK_PURPOSES = ['reset', 'verify', 'invitation'] as const
export type LinkPurpose = (typeof LINK_PURPOSES)[number]
