import {
  Avatar,
  Badge,
  Group as Line,
  SegmentedControl,
  Skeleton,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import {
  createSegment,
  getSegment,
  listUsers,
  previewSegment,
  updateSegment,
} from '../../../sdk/src/generated/admin.ts'
import type { Segment } from '../../../sdk/src/generated/schemas.ts'
import { call, TrellisError } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { Card, PageHead, ProjectLink, useAddress, useOpen, useParam, useProject } from '../parts/page.tsx'
import { count, counted, done, Failure, sentenceOf, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { nameOf } from '../parts/users.tsx'
import { Conditions } from './conditions.tsx'
import { type Group, groupOf, isWhole, newLeaf, placesOf, rulesOf } from './rules.ts'

/** The field of the rules that a refusal names. */
const errorsOf = (error: unknown): Readonly<Record<string, string>> => {
  const field = error instanceof TrellisError ? error.details?.['field'] : undefined
  const reason = error instanceof TrellisError ? (error.details?.['reason'] ?? error.message) : ''
  return typeof field === 'string' && field.startsWith('rules') ? { [field]: String(reason) } : {}
}

/** How many users match now, and some of them, while the conditions are edited. */
const useSize = (group: Group) => {
  const { path } = useProject()
  const leaves = placesOf(group)
  const isReady = leaves.length > 0 && leaves.every(([, leaf]) => isWhole(leaf))
  const [settled] = useDebouncedValue(JSON.stringify(rulesOf(group)), 350)
  const preview = useQuery({
    queryKey: ['segment size', path.projectId, settled],
    enabled: isReady,
    retry: false,
    queryFn: () => call(previewSegment, { path, body: { rules: JSON.parse(settled) } }),
    placeholderData: (before) => before,
  })
  const all = useQuery({
    queryKey: ['user count', path.projectId],
    queryFn: async () => (await call(listUsers, { path, query: { limit: 1 } })).total,
  })
  return { preview, all: all.data, isReady, isEmpty: leaves.length === 0 }
}

const Size = ({ size }: { size: ReturnType<typeof useSize> }) => {
  const { preview, all, isReady, isEmpty } = size
  const data = isReady && !preview.error ? preview.data?.data : undefined
  const share = data && all ? Math.round((data.count / all) * 100) : undefined
  return (
    <aside className="card sticky" aria-label="Who matches now" aria-busy={preview.isFetching}>
      <Stack gap="sm">
        <Line justify="space-between">
          <Text fw={600} fz={17}>
            Who matches now
          </Text>
          <Badge variant="dot" color="leaf">
            live
          </Badge>
        </Line>
        <div role="status">
          {data ? (
            <>
              <Text fz={32} fw={600} lh={1.2}>
                {data.is_estimate && 'about '}
                {count(data.count)}
              </Text>
              <Text size="sm" c="dimmed">
                {data.count === 1 ? 'user' : 'users'}
                {share !== undefined && `, ${share} % of ${count(all)}`}
                {data.is_estimate && `, give or take ${count(data.margin)}`}
              </Text>
              <div className="meter" aria-hidden>
                <div style={{ width: `${Math.min(100, share ?? 0)}%` }} />
              </div>
            </>
          ) : isEmpty ? (
            <Text size="sm" c="dimmed">
              Add a condition: the number appears as you type.
            </Text>
          ) : preview.error && isReady ? (
            <Text size="sm" c="var(--bad)">
              {sentenceOf(preview.error)}
            </Text>
          ) : isReady ? (
            <Skeleton h={60} />
          ) : (
            <Text size="sm" c="dimmed">
              A condition is not complete yet.
            </Text>
          )}
        </div>
        {data && data.sample.length > 0 && (
          <Stack gap={6} className="links">
            <Text size="xs" c="dimmed">
              Some of them
            </Text>
            {data.sample.slice(0, 6).map((user) => (
              <Line key={user.id} gap={8} wrap="nowrap">
                <Avatar size={22} name={nameOf(user)} color="initials" aria-hidden />
                <ProjectLink to={`users/${user.id}`}>{nameOf(user)}</ProjectLink>
              </Line>
            ))}
          </Stack>
        )}
      </Stack>
    </aside>
  )
}

const keyFrom = (name: string) =>
  name
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '')
    .slice(0, 60)

const Builder = ({ segment, start }: { segment?: Segment; start?: Group }) => {
  const { path } = useProject()
  const open = useOpen()
  const refresh = useRefresh()
  const [name, setName] = useState(segment?.name ?? '')
  const [key, setKey] = useState<string>()
  const [about, setAbout] = useState(segment?.description ?? '')
  const [kind, setKind] = useState<string>(segment?.kind ?? 'dynamic')
  const [group, setGroup] = useState<Group>(
    () => start ?? (segment ? groupOf(segment.rules) : { join: 'and', items: [newLeaf('property')] }),
  )
  const size = useSize(group)
  const isDynamic = kind === 'dynamic'
  const rules = isDynamic ? { rules: rulesOf(group) } : {}
  const work = useMutation({
    mutationFn: () => {
      const common = { name, description: about || null, ...rules }
      return segment
        ? call(updateSegment, { path: { ...path, idOrKey: segment.id }, body: common })
        : call(createSegment, { path, body: { key: key ?? keyFrom(name), kind: kind as 'dynamic', ...common } })
    },
    onSuccess: async ({ data }) => {
      done(segment ? 'Saved. Who belongs is counted again.' : `“${data.name}” is there.`)
      void open(`segments/${data.id}`)
      await refresh()
    },
  })
  useUnsaved([name, key, about, kind, group], work)
  const refused = work.error instanceof TrellisError ? work.error.details?.['field'] : undefined
  const errorAt = (field: string) => (refused === field ? sentenceOf(work.error) : undefined)
  const canSave = name.trim() !== '' && (!isDynamic || size.isReady)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <div className="form segment-form">
        <div className="column">
          <Card title="Name">
            <div className="pair">
              <TextInput
                label="Name"
                description="What your team calls it"
                value={name}
                required
                error={errorAt('name')}
                onChange={(event) => setName(event.currentTarget.value)}
                data-autofocus
              />
              {!segment && (
                <TextInput
                  label="Key"
                  description="What your code calls it"
                  value={key ?? keyFrom(name)}
                  error={errorAt('key')}
                  onChange={(event) => setKey(event.currentTarget.value)}
                />
              )}
              <Textarea
                className="wide"
                label="Description"
                value={about}
                rows={2}
                onChange={(event) => setAbout(event.currentTarget.value)}
              />
            </div>
          </Card>
          <Card title="Who belongs">
            <Stack gap="md">
              {!segment && (
                <div className="scroll-x">
                  <SegmentedControl
                    aria-label="Who belongs"
                    data={[
                      { value: 'dynamic', label: 'Whoever meets conditions' },
                      { value: 'static', label: 'A list by hand' },
                    ]}
                    value={kind}
                    onChange={setKind}
                  />
                </div>
              )}
              {isDynamic ? (
                <Conditions
                  group={group}
                  onChange={setGroup}
                  errors={{ ...errorsOf(size.isReady ? size.preview.error : null), ...errorsOf(work.error) }}
                />
              ) : (
                <Text size="sm" c="dimmed">
                  You add and remove its users on the page of the segment.
                </Text>
              )}
            </Stack>
          </Card>
          <FormFoot
            verb={
              (segment ? 'Save' : 'Create segment') +
              (isDynamic && size.isReady && size.preview.data && !size.preview.error
                ? ` of ${counted(size.preview.data.data.count, 'user')}`
                : '')
            }
            work={{ error: refused === undefined ? work.error : null, isPending: work.isPending }}
            onCancel={() => open(segment ? `segments/${segment.id}` : 'segments')}
            isDisabled={!canSave}
          />
        </div>
        {isDynamic && <Size size={size} />}
      </div>
    </form>
  )
}

const back = { title: 'Segments', to: 'segments' }

export const New = () => {
  // a list of events offers its filter as a segment
  const [{ event, days }] = useAddress<'event' | 'days'>()
  const start: Group | undefined = event
    ? {
        join: 'and',
        items: [{ ...newLeaf('event'), event_name: event, op: 'gte', value: 1, within_days: Number(days ?? 30) }],
      }
    : undefined
  return (
    <>
      <PageHead title="New segment" about="Users for flags, messages, challenges and lists" back={back} />
      <Builder {...(start ? { start } : {})} />
    </>
  )
}

export const Edit = () => {
  const { path } = useProject()
  const id = useParam('id')
  const { data, error, refetch } = useQuery({
    queryKey: ['segment', path.projectId, id],
    queryFn: () => call(getSegment, { path: { ...path, idOrKey: id } }),
  })
  return (
    <>
      <PageHead
        title={data ? `Edit ${data.data.name}` : 'Edit segment'}
        back={{ title: 'Segment', to: `segments/${id}` }}
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {data ? <Builder segment={data.data} /> : !error && <Skeleton h={320} />}
    </>
  )
}
