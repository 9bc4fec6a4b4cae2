import { FINDING_RULES, type FindingRule } from '../../../../shared/mesh/finding-rules.ts'
import { catalog } from '../../../language.ts'
import { anyOf } from '../../../format.ts'
import { Group } from '../../../parts/form/labelled.tsx'
import { findingTexts } from '../../../strings/mesh/findings.ts'
import type { RuleOf } from '../rule.ts'
import { ALL, WatchedFields, who } from './fields.tsx'
import type { FieldsProps, KindView } from './kind.ts'

type Rule = RuleOf<'finding'>

/** Names in a sentence. */
const NAMED = 3

export const findingKind = catalog('findingKind', {
  name: 'Something wrong in the mesh',
  sentence: (findings: string, who: string) => `Tell me when this is found at ${who}: ${findings}`,
  anything: 'anything',
  findings: 'Findings',
  choose: 'Choose at least one',
})

export const finding: KindView<Rule> = {
  name: findingKind.name,
  fresh: (common) => ({ kind: 'finding', ...common, findings: [...FINDING_RULES], nodes: ALL }),
  sentence: ({ findings, nodes }) => findingKind.sentence(what(findings), who(nodes)),
  Fields,
}

function what(findings: readonly FindingRule[]): string {
  if (findings.length === FINDING_RULES.length) return findingKind.anything
  const names = findings.slice(0, NAMED).map((name) => findingTexts.names[name])
  return anyOf([...names, ...(findings.length > NAMED ? ['…'] : [])])
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  return (
    <>
      <Group legend={findingKind.findings} error={rule.findings.length === 0 ? findingKind.choose : null}>
        <div class="choices">
          {FINDING_RULES.map((name) => (
            <label class="check" key={name}>
              <input
                type="checkbox"
                checked={rule.findings.includes(name)}
                onChange={(event) => {
                  const others = rule.findings.filter((other) => other !== name)
                  set({ findings: event.currentTarget.checked ? [...others, name] : others })
                }}
              />{' '}
              {findingTexts.names[name]}
            </label>
          ))}
        </div>
      </Group>
      <WatchedFields rule={rule} set={set} />
    </>
  )
}
