export const SECTION_KINDS = ['config', 'moduleConfig', 'owner', 'channels'] as const
export type SectionKind = (typeof SECTION_KINDS)[number]

export const FIELD_TYPES = ['boolean', 'enum', 'flags', 'integer', 'number', 'string', 'bytes', 'ipv4'] as const
/** Why a change of a field needs a confirmation. */
export const RISKS = ['region', 'mesh', 'link', 'access'] as const

/** The kind of a channel's key: none, one that everybody knows, or a private one. */
export const KEY_KINDS = ['none', 'default', 'custom'] as const
