import { Button, Group, Menu, Skeleton, Text } from '@mantine/core'
import { useState } from 'react'
import { deleteAiPrompt } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { More } from '../parts/more.tsx'
import { Card, Facts, PageHead, ProjectLink, useAddress, useOpen, useParam, useProject, Views } from '../parts/page.tsx'
import { count, counted, done, Failure, When } from '../parts/states.tsx'
import { BudgetCard, BudgetDrawer } from './budget.tsx'
import { type Prompt, providerNames, usePrompt, words } from './data.ts'
import { TryIt } from './try.tsx'
import { Versions } from './versions.tsx'

const back = { title: 'Prompts', to: 'ai' }
const perKey: Readonly<Record<string, string>> = { user: 'a user', ip: 'an address', project: 'the project' }

const Content = ({ prompt }: { prompt: Prompt }) => {
  const { path } = useProject()
  const open = useOpen()
  const [{ view = 'try', edit, budget }, setAddress] = useAddress<'view' | 'edit' | 'budget'>()
  const [isDeleting, setDeleting] = useState(false)
  const { name, rate_limit, cost } = prompt
  const limit = rate_limit as { window: number; max: number; key: string } | null
  // a new version replaces all of the former one: what nobody touches is sent again
  const { version: _, created_at: __, updated_at: ___, ...config } = prompt as unknown as Row
  return (
    <>
      <PageHead
        title={name}
        about={prompt.description ?? `${providerNames[prompt.provider] ?? prompt.provider}, ${prompt.model}`}
        back={back}
        actions={
          <>
            <Button onClick={() => setAddress({ edit: 'yes' }, false)}>Edit</Button>
            <More>
              <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                Delete prompt
              </Menu.Item>
            </More>
          </>
        }
      />
      <Views
        label="Prompt"
        views={[
          ['try', 'Try it'],
          ['versions', 'Versions'],
        ]}
      />
      <div className="split">
        <div className="column">
          {view === 'versions' ? (
            <Versions prompt={prompt} />
          ) : (
            <>
              <Card title="Instructions">
                {prompt.system_prompt ? (
                  <div className="talk-text">{prompt.system_prompt}</div>
                ) : (
                  <Text size="sm" c="dimmed">
                    None: the model gets what the call says, and nothing else.
                  </Text>
                )}
              </Card>
              <TryIt key={prompt.version} prompt={prompt} />
            </>
          )}
        </div>
        <div className="column">
          <BudgetCard name={name} onEdit={() => setAddress({ budget: 'yes' }, false)} />
          <Card title="Settings">
            <Facts
              facts={[
                ['Model', prompt.model],
                ['Provider', providerNames[prompt.provider] ?? prompt.provider],
                ['Longest answer', `${count(prompt.max_tokens)} tokens`],
                ['Asked by', prompt.client_invokable ? 'apps, servers and you' : 'servers and you'],
                [
                  'How often',
                  limit
                    ? `${counted(limit.max, 'call')} in ${counted(limit.window, 'second')} for ${perKey[limit.key] ?? limit.key}`
                    : 'as often as wanted',
                ],
                ['Costs a user', cost ? `${count(cost.amount)} ${cost.currency_code}` : 'nothing'],
                ['What was said is kept', prompt.log_payloads ? '90 days' : 'no'],
                ['Version', prompt.version],
                ['Last change', <When key="changed" at={prompt.updated_at} />],
              ]}
            />
            <Group gap="md" mt="sm" className="links" fz="sm">
              <ProjectLink to="ai/evaluations" search={{ prompt: name }}>
                Evaluate it
              </ProjectLink>
              <ProjectLink to="ai/calls" search={{ prompt: name }}>
                All calls of it
              </ProjectLink>
            </Group>
          </Card>
        </div>
      </div>
      <Drawer opened={edit === 'yes'} onClose={() => setAddress({ edit: undefined })} title={`Edit ${name}`}>
        <OperationForm
          key={prompt.version}
          operation="POST /v1/admin/projects/{projectId}/ai/prompts"
          verb={`Save as version ${prompt.version + 1}`}
          words={{ ...words, name: { isHidden: true } }}
          preset={config}
          onCancel={() => setAddress({ edit: undefined })}
          onDone={() => {
            void setAddress({ edit: undefined })
            done('The new version answers from now on.')
          }}
        />
      </Drawer>
      <BudgetDrawer name={budget === 'yes' ? name : undefined} onClose={() => setAddress({ budget: undefined })} />
      <Confirm
        title="Delete prompt"
        verb="Delete prompt"
        said={`“${name}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed={name}
        run={() => call(deleteAiPrompt, { path: { ...path, name } })}
        after={() => void open('ai')}
      >
        The prompt goes for good, with its versions, its budget and what it has spent. Apps that ask it get an error.
      </Confirm>
    </>
  )
}

/** One prompt: to be tried, changed and limited. */
export const Page = () => {
  const { data, error, refetch } = usePrompt(useParam('id'))
  if (data) return <Content prompt={data} />
  return (
    <>
      <PageHead title="Prompt" back={back} />
      {error ? <Failure error={error} onRetry={refetch} /> : <Skeleton h={320} />}
    </>
  )
}
