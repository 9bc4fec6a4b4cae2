import type * as z from 'zod'
import type { Scope } from '../../../shared/access/scope.ts'
import { isSameScope, WHOLE_SCOPE } from '../../../shared/access/scope.ts'
import { isEverything, type PermissionChanges } from './permissions.ts'

type Rights = {
  readonly isAdmin?: boolean | undefined
  readonly permissions?: PermissionChanges | undefined
  readonly scope?: Scope | undefined
}

/**
 * Refuses a new administrator who does not have every permission and the whole scope. Decision:
 * docs/decisions/short-decisions.md#an-administrator-has-every-permission
 */
export function wholeForAdmins<T extends z.ZodType<Rights>>(schema: T) {
  return schema
    .refine(({ isAdmin, permissions }) => isAdmin !== true || permissions === undefined || isEverything(permissions), {
      path: ['permissions'],
      message: 'an administrator has every permission',
    })
    .refine(({ isAdmin, scope }) => isAdmin !== true || scope === undefined || isSameScope(scope, WHOLE_SCOPE), {
      path: ['scope'],
      message: 'an administrator sees everything',
    })
}
