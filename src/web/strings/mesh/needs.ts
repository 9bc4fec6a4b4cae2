import { catalog } from '../../language.ts'
import { numberFormat, quantity } from '../quantity.ts'

/** What somebody should look at, at the top of the dashboard. */
export const needTexts = catalog('needTexts', {
  title: 'What needs you',
  titleOf: (n: number) => `What needs you (${numberFormat.format(n)})`,
  looking: 'Looking…',
  since: (when: string, age: string) => `since ${when} (${age})`,
  acknowledge: 'Acknowledge',
  acknowledgeOf: (what: string) => `Acknowledge: ${what}`,
  unsure: 'unknown while its radio is down',
  openNode: 'Open the node',
  openAlerts: 'Open alerts',
  openNodes: 'Show them',
  openSystem: 'Open System',
  writeRule: 'Write a rule',
  silent: (name: string) => `${name} has fallen silent.`,
  alsoSilent: (n: number, names: string) =>
    n === 1 ? `1 more has fallen silent: ${names}.` : `${n} more have fallen silent: ${names}.`,
  moreAlerts: (n: number) => (n === 1 ? '1 more alert is firing.' : `${n} more alerts are firing.`),
  linkDown: (name: string) => `${name} is not connected.`,
  sourceQuiet: (name: string) => `The collector ${name} delivers nothing.`,
  notDelivered: (target: string) => `Nothing can be delivered to ${target}.`,
  weakKey: (name: string) => `The key of ${name} is weak: others have it too.`,
  weakKeyHelp: 'update its firmware and create a new key',
  openSecurity: 'Open its security settings',
  notLooked: 'Not everything could be looked at.',
  nothing: 'Nothing needs you.',
  watches: (rules: number, nodes: number) =>
    nodes === 0
      ? `${quantity(rules, 'rule is', 'rules are')} on`
      : `${quantity(rules, 'rule watches', 'rules watch')} ${quantity(nodes, 'node', 'nodes')}`,
  lastCheck: (ago: string) => `last check ${ago}`,
  unwatched: 'Nothing is watched yet.',
  unwatchedHelp: 'No rule of yours is on, so no alert can fire.',
  notChecked: 'The alert rules have not been checked yet.',
  late: 'The alert rules are not being checked.',
  deaf: 'Nothing is heard: no radio is connected.',
  relaysHeard: (n: number) => quantity(n, 'router or repeater is heard', 'routers and repeaters are heard'),
  linksUp: (n: number) => quantity(n, 'radio or broker is connected', 'radios and brokers are connected'),
  serviceWell: 'storage, backups and jobs are in order',
})
