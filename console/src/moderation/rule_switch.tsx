import { Switch } from '@mantine/core'
import { useState } from 'react'
import { updateModerationRule } from '../../../sdk/src/generated/admin.ts'
import type { ModerationRule } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'
import { done, failed, useRefresh } from '../parts/states.tsx'

/** Turns a rule on and off. */
export const RuleSwitch = ({ rule, isLabelled = false }: { rule: ModerationRule; isLabelled?: boolean }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [isOn, setOn] = useState(rule.is_active)
  return (
    <Switch
      aria-label={`${rule.name} is on`}
      {...(isLabelled ? { label: isOn ? 'On' : 'Off' } : {})}
      checked={isOn}
      onChange={async (event) => {
        const next = event.currentTarget.checked
        setOn(next)
        try {
          await call(updateModerationRule, { path: { ...path, ruleId: rule.id }, body: { is_active: next } })
          done(next ? `“${rule.name}” watches again.` : `“${rule.name}” is off.`)
          await refresh()
        } catch (error) {
          setOn(!next)
          failed(error)
        }
      }}
    />
  )
}
