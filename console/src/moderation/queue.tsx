import { Button, Group, Kbd, SegmentedControl, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { ShieldCheck } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { listModerationQueue } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { counted, Empty, Failure } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { Author } from './author.tsx'
import { canEscalate, type Item, isOpen, statuses } from './item.ts'
import { ItemCard } from './item_card.tsx'
import { QueueList } from './queue_list.tsx'
import { useKeys } from './use_keys.ts'
import { VerdictForm } from './verdict_form.tsx'
import { type Draft, give, takeLastBack, useHeld, type Verdict } from './verdicts.ts'

const blank: Draft = { note: '', action: 'none' }
/** How many items are read at once. */
const most = 100

const help = (
  <span className="only-wide-inline">
    <Kbd size="xs">a</Kbd> approve, <Kbd size="xs">r</Kbd> reject, <Kbd size="xs">e</Kbd> escalate,{' '}
    <Kbd size="xs">j</Kbd> next, <Kbd size="xs">k</Kbd> back, <Kbd size="xs">Ctrl Z</Kbd> undo
  </span>
)

/** The queue: what waits at the left, one item with its author's record at the right, worked by keys. */
export const Page = () => {
  const { path } = useProject()
  const [{ status: chosen, item: place }, setAddress] = useAddress<'status' | 'item'>()
  const status = statuses.find(({ value }) => value === chosen)?.value ?? 'pending'
  const queue = useQuery({
    queryKey: ['moderation', path.projectId, status],
    queryFn: () => call(listModerationQueue, { path, query: { status, limit: most, include: 'user' } }),
    refetchInterval: 20_000,
  })
  const held = useHeld(path.projectId)
  // a note stays with its item, while others are looked at
  const [drafts, setDrafts] = useState<Readonly<Record<string, Draft>>>({})
  useUnsaved(Object.values(drafts).flatMap(({ note }) => (note.trim() === '' ? [] : [note])))
  const isShown = useRef(false)
  useEffect(() => {
    isShown.current = true
    return () => {
      isShown.current = false
    }
  }, [])
  const read = (queue.data?.data ?? []) as unknown as readonly Item[]
  const items = read.filter(({ id }) => !held.includes(id))
  const total = (queue.data?.total ?? 0) - (read.length - items.length)
  const at = Math.max(
    0,
    items.findIndex(({ id }) => id === place),
  )
  const current = items[at]

  const select = (index: number) => {
    const next = items[Math.min(Math.max(0, index), items.length - 1)]
    if (next) void setAddress({ item: next.id })
  }
  const judge = (verdict: Verdict) => {
    if (!current || !isOpen(current) || (verdict === 'escalate' && !canEscalate(current))) return
    const { id } = current
    const { [id]: draft = blank, ...others } = drafts
    // the next one is shown at once; a refusal or Undo brings this one back
    const after = items[at + 1] ?? items[at - 1]
    give(path.projectId, current, verdict, draft, () => {
      if (!isShown.current) return
      setDrafts((now) => ({ ...now, [id]: draft }))
      void setAddress({ item: id })
    })
    setDrafts(others)
    void setAddress({ item: after?.id })
  }
  useKeys({
    a: () => judge('approve'),
    r: () => judge('reject'),
    e: () => judge('escalate'),
    j: () => select(at + 1),
    k: () => select(at - 1),
    'mod+z': () => takeLastBack(path.projectId),
  })
  return (
    <>
      <PageHead title="Moderation" about={help} />
      <Group mb="sm" justify="space-between">
        <SegmentedControl
          size="xs"
          aria-label="Status"
          data={[...statuses]}
          value={status}
          onChange={(next) => setAddress({ status: next === 'pending' ? undefined : next, item: undefined })}
        />
        <Text size="sm" c="dimmed" role="status">
          {queue.data && `${counted(total, 'item')}${total > most ? `, the newest ${most} here` : ''}`}
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
          <QueueList items={items} at={at} onSelect={select} />
          <div className="column">
            <ItemCard item={current}>
              <VerdictForm
                item={current}
                draft={drafts[current.id] ?? blank}
                onDraft={(next) => setDrafts({ ...drafts, [current.id]: next })}
                onJudge={judge}
              />
            </ItemCard>
            {current.subject_user_id && (
              <Author id={current.subject_user_id} isSubject={current.subject_type === 'user'} />
            )}
          </div>
        </div>
      )}
    </>
  )
}
