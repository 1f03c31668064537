import { Group, SegmentedControl, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { ScrollText } from 'lucide-react'
import { adminListAiPrompts } from '../../../sdk/src/generated/admin.ts'
import type { AiInvocation } from '../../../sdk/src/generated/schemas.ts'
import { call, type Row } from '../api.ts'
import { useChosen } from '../parts/chosen.ts'
import { Drawer } from '../parts/drawer.tsx'
import { List } from '../parts/list.tsx'
import { Facts, PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { dollars, providerNames } from './data.ts'
import { Talk } from './try.tsx'

const kinds: Readonly<Record<string, string>> = {
  invoke: 'Prompt',
  evaluate: 'Evaluation',
  messages: 'Native call',
  embeddings: 'Embeddings',
}
const problems: Readonly<Record<string, string>> = {
  PROVIDER_FAILED: 'the provider failed',
  PROVIDER_TIMEOUT: 'the provider was too slow',
  ABANDONED: 'its end was never told',
  CONTENT_REJECTED: 'moderation refused it',
}

const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : Array.isArray(content)
      ? content.map((part: Row) => (part['type'] === 'text' ? String(part['text']) : '(a picture)')).join('\n')
      : ''

const Detail = ({ one }: { one: AiInvocation }) => {
  const payload = one.payload as { messages?: readonly Row[]; output?: unknown; context?: Row } | null
  const messages = [
    ...(payload?.messages ?? []).map((message) => ({
      role: message['role'] === 'assistant' ? ('assistant' as const) : ('user' as const),
      content: textOf(message['content']),
    })),
    ...(typeof payload?.output === 'string' ? [{ role: 'assistant' as const, content: payload.output }] : []),
  ]
  const context = Object.entries(payload?.context ?? {})
  const seconds = one.finished_at && (Date.parse(one.finished_at) - Date.parse(one.created_at)) / 1000
  return (
    <Stack gap="md">
      <Facts
        facts={[
          ['State', <Status key="state" value={one.status} />],
          ...(one.error_code
            ? [['Why', problems[one.error_code] ?? one.error_code.toLowerCase().replace(/_/g, ' ')] as const]
            : []),
          ['Model', `${one.model}, ${providerNames[one.provider] ?? one.provider}`],
          ['Asked by', one.user_id ? <UserName key="user" id={one.user_id} /> : 'you or a server'],
          [
            'Tokens',
            `${count(one.input_tokens)} in, ${count(one.output_tokens)} out${one.is_estimated ? ', estimated' : ''}`,
          ],
          ['Cost', dollars(one.cost_usd)],
          ['Took', seconds ? `${seconds.toFixed(1)} s` : '—'],
          ['When', <When key="when" at={one.created_at} />],
          ...context.map(([name, value]) => [name, typeof value === 'object' ? 'an object' : String(value)] as const),
        ]}
      />
      {messages.length > 0 ? (
        <Talk messages={messages} />
      ) : (
        <Text size="sm" c="dimmed">
          What was said is not kept. A prompt can be told to keep it, for 90 days.
        </Text>
      )}
    </Stack>
  )
}

/** Every call of a provider. */
export const Page = () => {
  const { path } = useProject()
  const [{ prompt, status = 'all' }, setAddress] = useAddress<'prompt' | 'status'>()
  const { one: open, isOpen, choose: show, close } = useChosen<AiInvocation>()
  const { data: prompts } = useQuery({
    queryKey: ['prompts', path.projectId],
    queryFn: async () => (await call(adminListAiPrompts, { path, query: { limit: 100 } })).data,
  })
  return (
    <>
      <PageHead title="Calls" about="What was asked of the providers, newest first; kept for 90 days" />
      <Group mb="sm" gap="xs">
        <Select
          aria-label="Prompt"
          placeholder="Every prompt"
          clearable
          searchable
          data={(prompts ?? []).map(({ name }) => name)}
          value={prompt ?? null}
          onChange={(next) => setAddress({ prompt: next ?? undefined })}
        />
        <div className="scroll-x">
          <SegmentedControl
            aria-label="State"
            value={status}
            onChange={(next) => setAddress({ status: next === 'all' ? undefined : next })}
            data={[
              { value: 'all', label: 'All' },
              { value: 'succeeded', label: 'Succeeded' },
              { value: 'rejected', label: 'Rejected' },
              { value: 'failed', label: 'Failed' },
              { value: 'cancelled', label: 'Cancelled' },
            ]}
          />
        </div>
      </Group>
      <List<AiInvocation>
        name="Calls"
        operation="GET /v1/admin/projects/{projectId}/ai/invocations"
        query={{ include: 'user', prompt, ...(status === 'all' ? {} : { status }) }}
        every={10_000}
        onOpen={show}
        columns={[
          {
            title: 'Call',
            show: (one) => (
              <>
                <RowButton onClick={() => show(one)}>{one.prompt ?? kinds[one.kind]}</RowButton>
                <span className="cell-sub">
                  {kinds[one.kind]}
                  {one.version !== null && `, version ${one.version}`}
                </span>
              </>
            ),
          },
          {
            title: 'Asked by',
            show: ({ user_id, user }) => (user_id ? <UserName id={user_id} user={user} /> : 'you or a server'),
          },
          { title: 'Model', show: ({ model }) => model },
          {
            title: 'Tokens',
            isNumber: true,
            show: ({ input_tokens, output_tokens }) => `${count(input_tokens)} + ${count(output_tokens)}`,
          },
          { title: 'Cost', isNumber: true, show: ({ cost_usd }) => dollars(cost_usd) },
          { title: 'State', show: (one) => <Status value={one.status} /> },
          { title: 'When', show: ({ created_at }) => <When at={created_at} /> },
        ]}
        empty={
          <Empty icon={<ScrollText size={22} />} title={prompt || status !== 'all' ? 'No such call' : 'No calls yet'}>
            Each call of a model appears here with its cost.{' '}
            <span className="links">
              <ProjectLink to="ai">
                <u>Try a prompt</u>
              </ProjectLink>
            </span>{' '}
            to see one.
          </Empty>
        }
      />
      <Drawer opened={isOpen} onClose={close} title={open?.prompt ?? kinds[open?.kind ?? ''] ?? 'Call'}>
        {open && <Detail one={open} />}
      </Drawer>
    </>
  )
}
