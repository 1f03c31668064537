import { Button, Text } from '@mantine/core'
import { useState } from 'react'
import { revertFlag } from '../../../sdk/src/generated/admin.ts'
import type { FlagHistory } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { List } from '../parts/list.tsx'
import { useProject } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { audienceOf, type Flag, type Rule, valueWords } from './data.tsx'

const ruleChange = (before: readonly Rule[], after: readonly Rule[]): string => {
  if (before.length !== after.length)
    return after.length > before.length
      ? `Rule added: ${audienceOf(after.at(-1) ?? { value: null }, '')}${share(after.at(-1))}`
      : 'Rule removed'
  const at = after.findIndex((rule, n) => JSON.stringify(rule) !== JSON.stringify(before[n]))
  const [was, is] = [before[at], after[at]]
  if (was && is && (was.percentage ?? 100) !== (is.percentage ?? 100))
    return `Rule ${at + 1}: ${was.percentage ?? 100} % to ${is.percentage ?? 100} %`
  return `Rule ${at + 1} changed`
}
const share = (rule: Rule | undefined) => (rule?.percentage === undefined ? '' : `, ${rule.percentage} %`)

/** What a version changed, in sentences. */
export const changeWords = ({ version, changes }: Pick<FlagHistory, 'version' | 'changes'>): readonly string[] => {
  const words = Object.entries(changes).flatMap(([name, [before, after]]): readonly string[] => {
    if (JSON.stringify(before ?? null) === JSON.stringify(after ?? null)) return []
    if (name === 'is_enabled') return version === 1 ? [] : [after ? 'Switched on' : 'Switched off']
    if (name === 'rules') {
      const [was, is] = [(before ?? []) as readonly Rule[], (after ?? []) as readonly Rule[]]
      return was.length === 0 && is.length === 0 ? [] : [ruleChange(was, is)]
    }
    if (name === 'default_value')
      return version === 1 ? [] : [`Everyone else: ${valueWords(before)} to ${valueWords(after)}`]
    if (name === 'off_value') return version === 1 ? [] : [`While off: ${valueWords(before)} to ${valueWords(after)}`]
    if (name === 'schedule') {
      const steps = (after as readonly unknown[]).length
      return version === 1 && steps === 0 ? [] : [steps > 0 ? `${steps} steps planned` : 'Plan ended']
    }
    if (name === 'tags' && version === 1) return []
    return version === 1 ? [] : [`${name.charAt(0).toUpperCase()}${name.slice(1)} changed`]
  })
  return version === 1 ? ['Made', ...words] : words
}

/** Every version of a flag, each of which can be restored. */
export const History = ({ flag }: { flag: Flag }) => {
  const { path } = useProject()
  const [version, setVersion] = useState(0)
  const [isOpen, setOpen] = useState(false)
  const revert = (to: number) => call(revertFlag, { path: { ...path, idOrKey: flag.key }, body: { version: to } })
  return (
    <>
      <List<FlagHistory>
        name="Versions"
        operation="GET /v1/admin/projects/{projectId}/flags/{idOrKey}/history"
        path={{ idOrKey: flag.key }}
        keyOf={(one) => String(one.version)}
        columns={[
          { title: 'Version', show: (one) => one.version },
          { title: 'Change', show: (one) => changeWords(one).join('. ') || 'Nothing that people see' },
          {
            title: 'By',
            show: ({ actor }) =>
              actor.label ?? (actor.type === 'developer' ? 'a developer' : actor.type.replace(/_/g, ' ')),
          },
          { title: 'When', show: (one) => <When at={one.changed_at} /> },
          {
            title: 'Restore',
            show: (one) =>
              one.version === flag.version ? (
                <Text size="sm" c="dimmed" component="span">
                  current
                </Text>
              ) : (
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-label={`Restore version ${one.version}`}
                  onClick={() => {
                    setVersion(one.version)
                    setOpen(true)
                  }}
                >
                  Restore
                </Button>
              ),
          },
        ]}
        empty={<Empty title="No changes yet" />}
      />
      <Confirm
        title={`Restore version ${version}`}
        verb="Restore"
        said={`The flag is as in version ${version}.`}
        isOpen={isOpen}
        isDangerous={false}
        onClose={() => setOpen(false)}
        run={() => revert(version)}
        undo={() => revert(flag.version)}
      >
        The switch, the rules and the values become those of version {version}, as a new version. Planned steps stay.
      </Confirm>
    </>
  )
}
