import { Button, Group, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useRef, useState } from 'react'
import { callAny, TrellisError } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { Card, PageHead, useOpen, useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { columnBody, type Draft, emptyDraft } from './column_draft.ts'
import { accessOf } from './data.ts'
import { DraftLine } from './draft_line.tsx'
import { PolicyChoice } from './policies.tsx'
import { SqlPreview } from './sql.tsx'

type Line = Draft & { readonly key: number }
const operation = 'POST /v1/admin/projects/{projectId}/collections'

/** A new collection: its name, its columns as lines, and who may read and change rows. */
export const Page = () => {
  const { path } = useProject()
  const open = useOpen()
  const refresh = useRefresh()
  const nextKey = useRef(2)
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [scope, setScope] = useState<'user' | 'group'>('user')
  const [read, setRead] = useState('owner')
  const [write, setWrite] = useState('owner')
  const [lines, setLines] = useState<readonly Line[]>([{ ...emptyDraft, key: 1 }])
  const columns = lines.filter((line) => line.name !== '').map(columnBody)
  const body = {
    name,
    ...(description ? { description } : {}),
    ...(scope === 'group' ? { owner_scope: scope } : {}),
    read_policy: read,
    write_policy: write,
    columns,
  }
  const work = useMutation({
    mutationFn: () => callAny(operation, { path, body }),
    onSuccess: async () => {
      done(`The collection “${name}” is there.`)
      void open(`collections/${name}`)
      await refresh()
    },
  })
  useUnsaved([name, description, scope, read, write, columns], work)
  const field = work.error instanceof TrellisError ? work.error.details?.['field'] : undefined
  return (
    <>
      <PageHead
        title="New collection"
        about="A table of your own, with rules for who reads and changes its rows"
        back={{ title: 'Collections', to: 'collections' }}
      />
      <form
        className="form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (name) work.mutate()
        }}
      >
        <Stack gap="md">
          <Card title="What it is">
            <Stack gap="md">
              <TextInput
                label="Name"
                description="Letters, digits and _, as apps ask for it"
                required
                placeholder="such as songs"
                maxLength={63}
                value={name}
                error={field === 'name' && work.error?.message}
                onChange={(event) => setName(event.currentTarget.value.toLowerCase().replace(/[^a-z0-9_]+/g, '_'))}
                autoComplete="off"
              />
              <Textarea
                label="Description"
                description="What it keeps, for your team"
                rows={2}
                maxLength={2000}
                value={description}
                onChange={(event) => setDescription(event.currentTarget.value)}
              />
            </Stack>
          </Card>
          <Card title="Columns">
            <Text size="sm" c="dimmed" mb="sm">
              An id, the owner and the times of a row are there by themselves.
            </Text>
            <Stack gap={0}>
              {lines.map((line, at) => (
                <DraftLine
                  key={line.key}
                  at={at + 1}
                  draft={line}
                  onChange={(draft) =>
                    setLines(lines.map((one) => (one.key === line.key ? { ...draft, key: line.key } : one)))
                  }
                  onRemove={() => setLines(lines.filter((one) => one.key !== line.key))}
                />
              ))}
            </Stack>
            <Button
              variant="default"
              size="xs"
              mt="sm"
              leftSection={<Plus size={14} />}
              onClick={() => {
                setLines([...lines, { ...emptyDraft, key: nextKey.current }])
                nextKey.current += 1
              }}
            >
              Add column
            </Button>
          </Card>
          <Card title="Access">
            <Stack gap="md">
              <div>
                <Text size="sm" fw={500} mb={4} id="scope">
                  A row belongs to
                </Text>
                <SegmentedControl
                  aria-labelledby="scope"
                  value={scope}
                  onChange={(next) => {
                    setScope(next as 'user' | 'group')
                    setRead(next === 'group' ? 'member' : 'owner')
                    setWrite('owner')
                  }}
                  data={[
                    { value: 'user', label: 'a user' },
                    { value: 'group', label: 'a group of users' },
                  ]}
                />
              </div>
              <div className="pair">
                <PolicyChoice verb="read" scope={scope} policy={read} onChange={setRead} />
                <PolicyChoice verb="write" scope={scope} policy={write} onChange={setWrite} />
              </div>
            </Stack>
          </Card>
          <FormFoot
            verb="Create collection"
            work={work}
            onCancel={() => open('collections')}
            isDisabled={name === ''}
          />
        </Stack>
        <aside className="card sticky" aria-label="What is made">
          <Stack gap="sm">
            <Text fw={600}>What is made</Text>
            <Text size="sm">{accessOf({ read_policy: read, write_policy: write, owner_scope: scope })}</Text>
            {name ? (
              <SqlPreview
                operation={operation}
                body={body}
                only={(statement) => /^(create table|create policy .*\bto app_user\b)/.test(statement)}
              />
            ) : (
              <Group>
                <Text size="sm" c="dimmed">
                  The SQL appears here once the collection has a name.
                </Text>
              </Group>
            )}
          </Stack>
        </aside>
      </form>
    </>
  )
}
