import { Button, Stack, Switch, Text, Textarea } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { Card, useProject } from '../parts/page.tsx'
import { done, Failure, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { accessOf, type Collection, one, type Scope } from './data.ts'
import { Frame } from './frame.tsx'
import { PolicyChoice } from './policies.tsx'
import { SqlPreview } from './sql.tsx'

const Content = ({ collection }: { collection: Collection }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const { name, owner_scope } = collection
  const before = {
    read_policy: collection.read_policy,
    write_policy: collection.write_policy,
    realtime: collection.realtime,
    description: collection.description ?? '',
  }
  const [draft, setDraft] = useState(before)
  const changes = Object.fromEntries(
    Object.entries(draft).filter(([key, value]) => value !== before[key as keyof typeof before]),
  )
  const isChanged = Object.keys(changes).length > 0
  const send = (body: object) => callAny(`PATCH ${one}`, { path: { ...path, name }, body })
  const work = useMutation({
    mutationFn: () => send(changes),
    onSuccess: async () => {
      done('Saved. The new rules hold from the next request on.', () => send(before).then(refresh))
      await refresh()
    },
  })
  useUnsaved(changes, work)
  // rules that stay as they are make no statements: those of a new collection with the same rules are shown
  const twin = `${name.slice(0, 55)}_preview`
  const policies = { read_policy: draft.read_policy, write_policy: draft.write_policy }
  return (
    <div className="split">
      <form
        className="column"
        onSubmit={(event) => {
          event.preventDefault()
          work.mutate()
        }}
      >
        <Card title="Access">
          <Text size="sm" mb="md">
            {accessOf({ ...collection, ...policies })}
          </Text>
          <div className="pair">
            {(['read', 'write'] as const).map((verb) => (
              <PolicyChoice
                key={verb}
                verb={verb}
                scope={owner_scope as Scope}
                policy={draft[`${verb}_policy`]}
                onChange={(policy) => setDraft({ ...draft, [`${verb}_policy`]: policy })}
              />
            ))}
          </div>
        </Card>
        <Card title="About it">
          <Stack gap="md">
            <Textarea
              label="Description"
              description="What it keeps, for your team"
              value={draft.description}
              maxLength={2000}
              rows={2}
              onChange={(event) => setDraft({ ...draft, description: event.currentTarget.value })}
            />
            <Switch
              label="Changes are sent to apps at once"
              description="Apps that listen hear of rows that are added, changed and deleted"
              checked={draft.realtime}
              onChange={(event) => setDraft({ ...draft, realtime: event.currentTarget.checked })}
            />
          </Stack>
        </Card>
        <div className="savebar">
          {work.error && (
            <div className="grow">
              <Failure error={work.error} />
            </div>
          )}
          <Button variant="default" disabled={!isChanged} onClick={() => setDraft(before)}>
            Take back
          </Button>
          <Button type="submit" disabled={!isChanged} loading={work.isPending}>
            Save access
          </Button>
        </div>
      </form>
      <Card title="The rules in the database">
        <SqlPreview
          operation="POST /v1/admin/projects/{projectId}/collections"
          body={{ name: twin, owner_scope, ...policies }}
          change={(statement) => statement.replaceAll(`collections.${twin}`, `collections.${name}`)}
          only={(statement) => /^create policy .*\bto app_user\b/.test(statement)}
        />
        <Text size="xs" c="dimmed" mt="sm">
          Row-level security of Postgres: it holds for the API, for REST, GraphQL and SQL alike. Your servers and you
          read and change every row.
        </Text>
      </Card>
    </div>
  )
}

/** Who reads and changes the rows of a collection. */
export const Page = () => (
  <Frame>
    {(collection) => <Content key={`${collection.name} ${collection.schema_version}`} collection={collection} />}
  </Frame>
)
