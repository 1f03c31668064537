import {
  Alert,
  Badge,
  Button,
  Group,
  Kbd,
  SegmentedControl,
  Select,
  Skeleton,
  Stack,
  Text,
  Textarea,
  Title,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { ShieldCheck } from 'lucide-react'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import {
  adminGetUser,
  approveModerationItem,
  escalateModerationItem,
  listEvents,
  listModerationQueue,
  listModerationRules,
  rejectModerationItem,
} from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Card, Facts, PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { count, counted, done, Empty, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { nameOf, UserName } from '../parts/users.tsx'
import { Standing } from '../users/users.tsx'

type Item = {
  readonly id: string
  readonly subject_type: string
  readonly subject_id: string
  readonly subject_user_id: string | null
  readonly user?: { readonly display_name: string | null } | null
  readonly snapshot: Row
  readonly source: 'report' | 'rule'
  readonly rule_id: string | null
  readonly reasons: Readonly<Record<string, number>>
  readonly report_count: number
  readonly priority: number
  readonly status: string
  readonly is_hidden: boolean
  readonly note: string | null
  readonly resolved_at: string | null
  readonly created_at: string
}
type Verdict = 'approve' | 'reject' | 'escalate'
const verdicts: Readonly<Record<string, Verdict>> = { a: 'approve', r: 'reject', e: 'escalate' }
const said: Readonly<Record<Verdict, string>> = {
  approve: 'It stays.',
  reject: 'It is removed.',
  escalate: 'It is left to somebody else.',
}
const statuses = [
  { value: 'pending', label: 'Waiting' },
  { value: 'escalated', label: 'Escalated' },
  { value: 'approved', label: 'Approved' },
  { value: 'rejected', label: 'Rejected' },
]
/** How long a verdict waits before it is sent: until then it can be taken back. */
const graceful = 10_000

/** What was written, as people read it. */
const textOf = ({ snapshot }: Item): string => {
  const text = snapshot['text'] ?? snapshot['body'] ?? snapshot['display_name'] ?? snapshot['name'] ?? snapshot['title']
  if (typeof text === 'string' && text !== '') return text
  const found = Object.values(snapshot).find((value) => typeof value === 'string' && value !== '')
  return typeof found === 'string' ? found : 'without text'
}
const words = (name: string) => name.replace(/_/g, ' ')
const reasonsOf = (item: Item): string =>
  Object.entries(item.reasons)
    .map(([reason, times]) => `${words(reason)}${times > 1 ? ` × ${times}` : ''}`)
    .join(', ') || (item.source === 'rule' ? 'caught by a rule' : 'reported')

/** Who wrote it, and what came of what that user wrote before. */
const Author = ({ id }: { id: string }) => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['user', path.projectId, id],
    queryFn: async () => (await call(adminGetUser, { path: { ...path, userId: id } })).data,
    retry: false,
  })
  const record = useQuery({
    queryKey: ['record', path.projectId, id],
    queryFn: async () => {
      const query = { event_name: 'svc.moderation.resolved', user_id: id, limit: 50 }
      return (await call(listEvents, { path, query })).data
    },
  })
  if (!data) return null
  const verdictsOf = (status: string) =>
    record.data?.filter(({ properties }) => properties['status'] === status).length ?? 0
  return (
    <Card title="Author">
      <Stack gap="sm">
        <Group justify="space-between" className="links">
          <ProjectLink to={`users/${id}`}>
            <b>{nameOf(data)}</b>
          </ProjectLink>
          <Standing user={data} />
        </Group>
        <Facts
          facts={[
            ['Mail', data.email],
            ['Joined', <When key="joined" at={data.created_at} />],
            ['Last seen', <When key="seen" at={data.last_seen_at} none="never" />],
            ['Removed before', count(verdictsOf('rejected'))],
            ['Kept before', count(verdictsOf('approved'))],
          ]}
        />
      </Stack>
    </Card>
  )
}

/** The rule that caught an item. */
const RuleName = ({ id }: { id: string }) => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['moderation rules', path.projectId],
    queryFn: () => call(listModerationRules, { path, query: { limit: 50 } }),
  })
  const rule = data?.data.find((one) => one.id === id)
  return rule ? (
    <>
      caught by <ProjectLink to={`moderation-rules/${id}`}>{rule.name}</ProjectLink>
    </>
  ) : (
    <>caught by a rule</>
  )
}

const Judged = ({ item }: { item: Item }) => (
  <Alert color="gray" mt="md">
    {item.status === 'approved' ? 'Approved' : item.status === 'rejected' ? 'Rejected' : 'Escalated'}{' '}
    {item.resolved_at && <When at={item.resolved_at} />}
    {item.note && `: ${item.note}`}
  </Alert>
)

const actions = [
  { value: 'none', label: 'Only remove it' },
  { value: 'warn', label: 'and warn the author' },
  { value: 'mute_24h', label: 'and mute for a day' },
  { value: 'ban', label: 'and ban the author' },
]

/** The queue: what waits at the left, one item with its author's record at the right, worked by keys. */
export const Page = () => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [{ status: chosen, item: place }, setAddress] = useAddress<'status' | 'item'>()
  const status = statuses.some(({ value }) => value === chosen) ? (chosen as 'pending') : 'pending'
  const queue = useQuery({
    queryKey: ['moderation', path.projectId, status],
    queryFn: () => call(listModerationQueue, { path, query: { status, limit: 100, include: 'user' } }),
    refetchInterval: 20_000,
  })
  // judged here and not sent yet, or sent and not read again yet
  const [settled, setSettled] = useState<readonly string[]>([])
  const [action, setAction] = useState('none')
  const [note, setNote] = useState('')
  const moved = useRef(0)
  const waiting = useRef(new Map<string, { timer: ReturnType<typeof setTimeout>; send: () => Promise<unknown> }>())
  const items = ((queue.data?.data ?? []) as unknown as readonly Item[]).filter(({ id }) => !settled.includes(id))
  const at = Math.max(
    0,
    items.findIndex(({ id }) => id === place),
  )
  const current = items[at]
  const isOpen = current?.status === 'pending' || current?.status === 'escalated'
  const total = Math.max(0, (queue.data?.total ?? 0) - settled.length)

  // whoever leaves the page sends what waits
  useEffect(() => {
    const flush = () => {
      for (const { timer, send } of waiting.current.values()) {
        clearTimeout(timer)
        send().catch(failed)
      }
      waiting.current.clear()
    }
    addEventListener('pagehide', flush)
    return () => {
      removeEventListener('pagehide', flush)
      flush()
    }
  }, [])

  const select = (index: number) => {
    const next = items[Math.min(Math.max(0, index), items.length - 1)]
    if (next) void setAddress({ item: next.id })
  }
  const judge = (verdict: Verdict) => {
    if (!current || !isOpen || (verdict === 'escalate' && current.status === 'escalated')) return
    const { id } = current
    const input = { path: { ...path, itemId: id } }
    const body = note ? { note } : {}
    const send = async () => {
      if (verdict === 'approve') await call(approveModerationItem, { ...input, body })
      else if (verdict === 'escalate') await call(escalateModerationItem, { ...input, body })
      else await call(rejectModerationItem, { ...input, body: { ...body, action: action as 'none' } })
    }
    // the next one is shown at once; a refusal or Undo brings this one back
    const after = items[at + 1] ?? items[at - 1]
    setSettled((before) => [...before, id])
    void setAddress({ item: after?.id })
    setNote('')
    setAction('none')
    const back = () => setSettled((before) => before.filter((one) => one !== id))
    const timer = setTimeout(() => {
      waiting.current.delete(id)
      send().then(
        async () => {
          await refresh()
          back()
        },
        (error) => {
          back()
          failed(error)
        },
      )
    }, graceful)
    waiting.current.set(id, { timer, send })
    done(`${textOf(current).slice(0, 60)}: ${said[verdict].toLowerCase()}`, async () => {
      const held = waiting.current.get(id)
      if (!held) throw new Error('It was sent already.')
      clearTimeout(held.timer)
      waiting.current.delete(id)
      back()
      void setAddress({ item: id })
    })
  }
  // before the next key can come: it is about the item that is seen
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      // `g` begins a move to another page
      const isMove = Date.now() - moved.current < 1500
      moved.current = event.key === 'g' ? Date.now() : 0
      if (isMove || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.target instanceof Element && event.target.closest('input, textarea, select, [role=dialog]')) return
      if (event.key === 'j') select(at + 1)
      if (event.key === 'k') select(at - 1)
      const verdict = verdicts[event.key]
      if (verdict) judge(verdict)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
  return (
    <>
      <PageHead
        title="Moderation"
        about={
          <span className="only-wide-inline">
            <Kbd size="xs">a</Kbd> approve, <Kbd size="xs">r</Kbd> reject, <Kbd size="xs">e</Kbd> escalate,{' '}
            <Kbd size="xs">j</Kbd> next, <Kbd size="xs">k</Kbd> back
          </span>
        }
      />
      <Group mb="sm" justify="space-between">
        <SegmentedControl
          size="xs"
          aria-label="Status"
          data={statuses}
          value={status}
          onChange={(next) => setAddress({ status: next === 'pending' ? undefined : next, item: undefined })}
        />
        <Text size="sm" c="dimmed" role="status">
          {queue.data && counted(total, 'item')}
        </Text>
      </Group>
      {queue.error && <Failure error={queue.error} onRetry={queue.refetch} />}
      {queue.isPending && <Skeleton h={320} />}
      {queue.data && items.length === 0 && (
        <div className="card">
          <Empty
            icon={<ShieldCheck size={22} />}
            title={status === 'pending' ? 'Nothing waits' : 'Nothing here'}
            action={
              <Button variant="default" component={ProjectLink} to="moderation-rules">
                Look at the rules
              </Button>
            }
          >
            What users report and what rules catch comes here.
          </Empty>
        </div>
      )}
      {current && (
        <div className="queue">
          <ul className="card queue-list" data-flush aria-label="Items">
            {items.map((item, index) => (
              <li key={item.id}>
                <button
                  type="button"
                  className="queue-item"
                  aria-current={index === at || undefined}
                  onClick={() => select(index)}
                >
                  <span className="queue-text">{textOf(item)}</span>
                  <span className="cell-sub">
                    {words(item.subject_type)} · {reasonsOf(item)}
                  </span>
                  <Group gap={6} mt={2}>
                    {item.priority >= 3 && <Status value="urgent" meaning="bad" />}
                    <Text size="xs" c="dimmed" component="span">
                      <When at={item.created_at} />
                    </Text>
                  </Group>
                </button>
              </li>
            ))}
          </ul>
          <div className="column">
            <article className="card" aria-label={words(current.subject_type)}>
              <Group justify="space-between" align="flex-start">
                <Title order={2}>{words(current.subject_type).replace(/^./, (first) => first.toUpperCase())}</Title>
                <Group gap={6}>
                  {current.is_hidden && <Status value="hidden meanwhile" meaning="warn" />}
                  <Badge variant="light" color="gray" styles={{ label: { color: 'var(--mantine-color-text)' } }}>
                    {current.source === 'rule' ? 'a rule' : counted(current.report_count, 'report')}
                  </Badge>
                </Group>
              </Group>
              <blockquote className="said">{textOf(current)}</blockquote>
              <Facts
                facts={[
                  ['Why', current.rule_id ? <RuleName key="why" id={current.rule_id} /> : reasonsOf(current)],
                  ['By', <UserName key="by" id={current.subject_user_id} user={current.user} />],
                  ['Since', <When key="at" at={current.created_at} />],
                ]}
              />
              {isOpen ? (
                <Stack gap="sm" mt="md">
                  <Textarea
                    aria-label="Note"
                    placeholder="Note for your team"
                    rows={2}
                    value={note}
                    onChange={(event) => setNote(event.currentTarget.value)}
                  />
                  <Group gap="xs">
                    <Button variant="default" onClick={() => judge('approve')} aria-keyshortcuts="a">
                      Approve
                    </Button>
                    <Button color="red.8" onClick={() => judge('reject')} aria-keyshortcuts="r">
                      Reject
                    </Button>
                    <Select
                      aria-label="What else"
                      data={actions}
                      value={action}
                      allowDeselect={false}
                      onChange={(next) => setAction(next ?? 'none')}
                      w={190}
                    />
                    {current.status === 'pending' && (
                      <Button variant="subtle" color="gray" onClick={() => judge('escalate')} aria-keyshortcuts="e">
                        Escalate
                      </Button>
                    )}
                  </Group>
                </Stack>
              ) : (
                <Judged item={current} />
              )}
            </article>
            {current.subject_user_id && <Author id={current.subject_user_id} />}
          </div>
        </div>
      )}
    </>
  )
}
