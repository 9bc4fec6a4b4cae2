import { isNameOf, namesOf } from '../names.ts'
import { type Action, ACTIONS, ALL_PERMISSIONS, type Permissions, type Resource, RESOURCE_NAMES } from './resources.ts'

/** Scopes that are not permissions, and the requirement on the owner of a token for each. */
export const SPECIAL_SCOPES = {
  /** Delivers packets in the name of any node, including texts, so its owner must be allowed to change the radios. */
  ingest: { resource: 'configuration', action: 'write' },
  /** Takes what radios of the collector shall send: an administrator gives it by name. */
  radio: 'admin',
  backup: 'admin',
  metrics: { resource: 'info', action: 'read' },
} as const satisfies Record<string, 'admin' | { resource: Resource; action: Action }>

export type SpecialScope = keyof typeof SPECIAL_SCOPES
const SPECIAL_NAMES = namesOf(SPECIAL_SCOPES)

/** The scopes that are permissions, by resource in this order. */
export function scopesOf(permissions: Permissions, order: readonly Resource[] = RESOURCE_NAMES) {
  return order.flatMap((resource) =>
    ACTIONS.filter((action) => permissions[resource][action]).map((action) => `${resource}:${action}` as const),
  )
}

/** The scopes of a token. */
export const SCOPES = [...scopesOf(ALL_PERMISSIONS), ...SPECIAL_NAMES]
export type Scope = (typeof SCOPES)[number]

export function isSpecialScope(scope: string): scope is SpecialScope {
  return isNameOf(SPECIAL_SCOPES, scope)
}

/** The owner of a token. */
export type ScopeOwner = { readonly isAdmin: boolean; readonly permissions: Permissions }

/** Whether a token of this owner could use a scope that is not a permission. */
export function mayUseScope({ isAdmin, permissions }: ScopeOwner, scope: SpecialScope): boolean {
  const required = SPECIAL_SCOPES[scope]
  return required === 'admin' ? isAdmin : permissions[required.resource][required.action]
}

/** The scopes that a token of this owner can use now. */
export function usableScopes(owner: ScopeOwner, order: readonly Resource[]): Scope[] {
  return [...scopesOf(owner.permissions, order), ...SPECIAL_NAMES.filter((scope) => mayUseScope(owner, scope))]
}
