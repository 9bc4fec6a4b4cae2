import type { VirtualNodeOptions } from '../../../app/connections/virtual-node-options.ts'
import type { AdminVariant } from '../../../meshtastic/link/admin-variants.ts'
import type { Sight } from './sight.ts'

/**
 * What becomes of an admin message. `copy`: answered here. `radio`: the radio answers it. `mark`: a mark of a node, which the service
 * keeps, too. `contact`: answered here as well, if the radio has it. `write`: the radio does it, after secrets are put back.
 */
export type AdminAction = 'copy' | 'radio' | 'mark' | 'contact' | 'write' | 'reboot' | 'dropped'

export type AdminVerdict =
  | { readonly kind: AdminAction; readonly name: string }
  | { readonly kind: 'refused'; readonly name: string; readonly why: string }

type Rule = { readonly name: string; readonly action: AdminAction | 'never' }

const free = (name: string, action: AdminAction): Rule => ({ name, action })
const never = (name: string): Rule => ({ name, action: 'never' })

const PINS = 'get_node_remote_hardware_pins'

/** The variants of `AdminMessage` by field number. Any other one is refused. */
const RULES: ReadonlyMap<number, Rule> = new Map([
  [1, free('get_channel', 'copy')],
  [3, free('get_owner', 'copy')],
  [5, free('get_config', 'copy')],
  [7, free('get_module_config', 'copy')],
  [10, free('get_canned_messages', 'radio')],
  [12, free('get_device_metadata', 'copy')],
  [14, free('get_ringtone', 'radio')],
  [18, never('set_ham_mode')],
  [19, free(PINS, 'radio')],
  [21, never('enter_dfu_mode')],
  [22, never('delete_file')],
  [24, never('backup_preferences')],
  [25, never('restore_preferences')],
  [26, never('remove_backup_preferences')],
  [27, never('send_input_event')],
  [32, free('set_owner', 'write')],
  [33, free('set_channel', 'write')],
  [34, free('set_config', 'write')],
  [35, free('set_module_config', 'write')],
  [36, free('set_canned_messages', 'write')],
  [37, free('set_ringtone', 'write')],
  [38, never('remove_node')],
  [39, free('set_favorite_node', 'mark')],
  [40, free('remove_favorite_node', 'mark')],
  [41, free('set_fixed_position', 'write')],
  [42, free('remove_fixed_position', 'write')],
  [43, free('set_time', 'dropped')],
  [44, free('get_ui_config', 'copy')],
  [46, never('store_ui_config')],
  [47, free('set_ignored_node', 'mark')],
  [48, free('remove_ignored_node', 'mark')],
  [49, free('toggle_muted_node', 'mark')],
  [64, free('begin_edit_settings', 'write')],
  [65, free('commit_edit_settings', 'write')],
  [66, free('add_contact', 'contact')],
  [67, never('key_verification')],
  [94, never('factory_reset_device')],
  [96, never('exit_simulator')],
  [97, free('reboot', 'reboot')],
  [98, free('shutdown', 'reboot')],
  [99, never('factory_reset_config')],
  [100, never('reset_nodes')],
  [102, never('update_firmware')],
  [103, never('sensor_config')],
  [104, never('unlock')],
])

/** Decides about an admin message by its variant alone; pure. What a write contains is checked later. */
export function judgeAdmin(
  variant: AdminVariant | null,
  options: Pick<VirtualNodeOptions, 'mayConfigure' | 'mayReboot'>,
  { viewer: { permissions } }: Pick<Sight, 'viewer'>,
): AdminVerdict {
  if (variant === null) return { kind: 'refused', name: 'unreadable', why: 'it cannot be read' }
  const rule = RULES.get(variant.number)
  if (rule === undefined) return { kind: 'refused', name: `variant ${variant.number}`, why: 'it is unknown' }
  const { name, action } = rule
  const refuse = (why: string): AdminVerdict => ({ kind: 'refused', name, why })
  if (action === 'never') return refuse('apps may not do this')
  const { configuration, nodes, messages } = permissions
  if (action === 'write' || action === 'reboot') {
    const isOn = action === 'write' ? options.mayConfigure : options.mayReboot
    if (!isOn) return refuse('this port does not allow it')
    if (!configuration.write) return refuse('the user of this port may not change settings')
  }
  // The pins name nodes that may be hidden from others.
  if ((action === 'mark' || name === PINS) && !nodes.write) return refuse('the user of this port may not change nodes')
  if (action === 'contact' && !messages.write) return refuse('the user of this port may not send')
  return { kind: action, name }
}
