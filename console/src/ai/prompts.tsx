import { Alert, Anchor, Button } from '@mantine/core'
import { MessageSquareText, Plus } from 'lucide-react'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useOpen } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { dollars, type Prompt, periodWords, providerNames, useBudget, useProviders } from './data.ts'

const Budget = ({ name }: { name: string }) => {
  const { data } = useBudget(name)
  if (!data) return <>…</>
  if (data.budget_usd === null) return <span className="dimmed">no limit</span>
  return (
    <>
      {dollars(data.period_spend_usd)} of {dollars(data.budget_usd)}
      <span className="cell-sub">{data.exceeded ? 'used up' : periodWords[data.budget_period]}</span>
    </>
  )
}

/** The prompts of the project. */
export const Page = () => {
  const open = useOpen()
  const { data: providers } = useProviders()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open('ai/prompts/new')}>
      New prompt
    </Button>
  )
  return (
    <>
      <PageHead
        title="Prompts"
        about="Instructions for a model, which apps ask by name: they never see a key or the text"
        actions={make}
      />
      {providers?.length === 0 && (
        <Alert color="yellow" mb="sm" title="No provider is connected">
          Calls are refused until you{' '}
          <Anchor component={ProjectLink} to="ai/providers" size="sm" c="inherit" underline="always">
            connect a provider
          </Anchor>
          .
        </Alert>
      )}
      <List<Prompt>
        name="Prompts"
        operation="GET /v1/admin/projects/{projectId}/ai/prompts"
        keyOf={({ name }) => name}
        to={({ name }) => `ai/prompts/${name}`}
        columns={[
          {
            title: 'Prompt',
            show: ({ name, description, system_prompt }) => (
              <>
                <ProjectLink to={`ai/prompts/${name}`}>{name}</ProjectLink>
                <span className="cell-sub">{description ?? system_prompt ?? 'no instructions'}</span>
              </>
            ),
          },
          {
            title: 'Model',
            show: ({ provider, model }) => (
              <>
                {model}
                <span className="cell-sub">{providerNames[provider] ?? provider}</span>
              </>
            ),
          },
          {
            title: 'Asked by',
            show: ({ client_invokable }) => (
              <Status value={client_invokable ? 'apps' : 'servers only'} meaning={client_invokable ? 'good' : 'none'} />
            ),
          },
          { title: 'Budget', show: ({ name }) => <Budget name={name} /> },
          { title: 'Version', isNumber: true, show: ({ version }) => version },
          { title: 'Last change', show: ({ updated_at }) => <When at={updated_at} /> },
        ]}
        empty={
          <Empty icon={<MessageSquareText size={22} />} title="No prompts yet" action={make}>
            A prompt keeps the instructions, the model and the limits in one place. You change it here, without a
            release, and a budget ends what it may cost.
          </Empty>
        }
      />
    </>
  )
}
