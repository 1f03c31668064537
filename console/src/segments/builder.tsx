import { SegmentedControl, Skeleton, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { createSegment, getSegment, updateSegment } from '../../../sdk/src/generated/admin.ts'
import type { Segment } from '../../../sdk/src/generated/schemas.ts'
import { call, TrellisError } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { Card, PageHead, useAddress, useOpen, useParam, useProject } from '../parts/page.tsx'
import { counted, done, Failure, sentenceOf, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { Conditions } from './conditions.tsx'
import { newLeaf } from './leaves.ts'
import { type Group, groupOf, rulesOf } from './rules.ts'
import { Size, useSize } from './size.tsx'

/** The field of the rules that a refusal names. */
const errorsOf = (error: unknown): Readonly<Record<string, string>> => {
  const field = error instanceof TrellisError ? error.details?.['field'] : undefined
  const reason = error instanceof TrellisError ? (error.details?.['reason'] ?? error.message) : ''
  return typeof field === 'string' && field.startsWith('rules') ? { [field]: String(reason) } : {}
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
