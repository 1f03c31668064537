import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import { createModerationRule, deleteModerationRule } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { PageHead, useOpen, useParam, useProject } from '../parts/page.tsx'
import { Empty, Failure } from '../parts/states.tsx'
import { useRules } from './rule_data.ts'
import { RuleForm } from './rule_form.tsx'
import { RuleSwitch } from './rule_switch.tsx'
import { Try } from './rule_try.tsx'
import { ruleInWords, type Type, types } from './rule_words.ts'

const back = { title: 'Moderation rules', to: 'moderation-rules' }

/** A new rule. */
export const New = () => (
  <>
    <PageHead title="New rule" about="It reads what users write from now on" back={back} />
    <div className="card narrow">
      <RuleForm />
    </div>
  </>
)

/** One rule, which can be changed, tried, switched off and deleted. */
export const One = () => {
  const { path } = useProject()
  const id = useParam('id')
  const open = useOpen()
  const [isDeleting, setDeleting] = useState(false)
  const { data, error, refetch } = useRules()
  const rule = data?.data.find((one) => one.id === id)
  if (!rule)
    return (
      <>
        <PageHead title="Rule" back={back} />
        {error ? (
          <Failure error={error} onRetry={refetch} />
        ) : data ? (
          <Empty title="It is not here (any more)" />
        ) : (
          <Skeleton h={320} />
        )}
      </>
    )
  return (
    <>
      <PageHead
        title={rule.name}
        about={`${types[rule.rule_type as Type][1]}: ${ruleInWords(rule)}`}
        back={back}
        actions={
          <>
            <RuleSwitch key={String(rule.is_active)} rule={rule} isLabelled />
            <Button variant="default" c="var(--bad)" onClick={() => setDeleting(true)}>
              Delete
            </Button>
          </>
        }
      />
      <div className="split">
        <div className="card">
          <RuleForm key={rule.updated_at} rule={rule} />
        </div>
        <Try rule={rule} />
      </div>
      <Confirm
        title="Delete rule"
        verb="Delete rule"
        said={`“${rule.name}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        run={() => call(deleteModerationRule, { path: { ...path, ruleId: rule.id } })}
        undo={() =>
          call(createModerationRule, {
            path,
            body: {
              name: rule.name,
              rule_type: rule.rule_type as Type,
              config: rule.config,
              is_active: rule.is_active,
            },
          })
        }
        after={() => void open('moderation-rules')}
      >
        It catches nothing any more. What it queued stays in the queue.
      </Confirm>
    </>
  )
}
