import { Code, Group, SegmentedControl, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { Card, useProject } from '../parts/page.tsx'
import { Copied } from '../parts/status.tsx'
import { type Collection, type CollectionColumn, isNumeric } from './data.ts'
import { Frame } from './frame.tsx'

const example = ({ type, name, enum: choices }: CollectionColumn): unknown => {
  if (choices) return choices[0]
  if (isNumeric(type)) return 3
  if (type === 'boolean') return true
  if (type === 'date') return '2026-12-24'
  if (type === 'timestamptz') return '2026-12-24T18:00:00Z'
  if (type.endsWith('[]')) return []
  if (type === 'uuid') return '…'
  return `A ${name}`
}

type Snippet = { readonly title: string; readonly sdk: string; readonly curl: string }

const snippetsOf = ({ name, columns }: Collection): readonly Snippet[] => {
  const some = columns.filter(({ type }) => !['jsonb', 'vector'].includes(type)).slice(0, 3)
  const values = Object.fromEntries(some.map((column) => [column.name, example(column)]))
  const first = some.find(({ type }) => isNumeric(type) || type === 'boolean' || type === 'text')
  const filter = first ? { column: first.name, op: 'eq', value: example(first) } : { and: [] }
  const written = (value: unknown) => JSON.stringify(value)
  const object = (value: unknown) =>
    written(value)
      .replace(/"(\w+)":/g, ' $1: ')
      .replace(/,(?= )/g, ',')
      .replace(/"/g, "'")
      .replace(/\}/g, ' }')
  const root = `${location.origin}/v1/client/collections/${name}`
  const head = `-H "x-api-key: $KEY" -H "authorization: Bearer $SESSION"`
  const json = `${head} \\\n  -H 'content-type: application/json'`
  return [
    {
      title: 'Find rows',
      sdk: `const { data } = await app.call(findRows, {\n  path: { name: '${name}' },\n  body: { filter: ${object(filter)}, limit: 20 },\n})`,
      curl: `curl ${root}/find ${json} \\\n  -d '${written({ filter, limit: 20 })}'`,
    },
    {
      title: 'Add a row',
      sdk: `await app.call(createRow, {\n  path: { name: '${name}' },\n  body: ${object(values)},\n})`,
      curl: `curl ${root} ${json} \\\n  -d '${written(values)}'`,
    },
    {
      title: 'Change a row',
      sdk: `await app.call(updateRow, {\n  path: { name: '${name}', id },\n  body: ${object(Object.fromEntries(Object.entries(values).slice(0, 1)))},\n})`,
      curl: `curl -X PATCH ${root}/$ID ${json} \\\n  -d '${written(Object.fromEntries(Object.entries(values).slice(0, 1)))}'`,
    },
    {
      title: 'Delete a row',
      sdk: `await app.call(deleteRow, { path: { name: '${name}', id } })`,
      curl: `curl -X DELETE ${root}/$ID ${head}`,
    },
  ]
}

const Block = ({ title, text }: { title: string; text: string }) => (
  <Card title={title} actions={<Copied value={text} label={`Copy: ${title.toLowerCase()}`} />}>
    <Code block data-code tabIndex={0}>
      {text}
    </Code>
  </Card>
)

const Content = ({ collection }: { collection: Collection }) => {
  const { path } = useProject()
  const [way, setWay] = useState('sdk')
  const { data } = useQuery({
    queryKey: ['types', path.projectId, collection.schema_version, collection.name],
    queryFn: async () =>
      ((await callAny('GET /v1/admin/projects/{projectId}/types', { path })).data as { typescript: string }).typescript,
  })
  const own = data?.match(new RegExp(`^ {2}${collection.name}: \\{[\\s\\S]*?^ {2}\\}`, 'm'))?.[0].replace(/^ {2}/gm, '')
  return (
    <Stack gap="md" maw={860}>
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          As an app asks, with its client key and the session of a user. The access rules decide which rows it meets.
        </Text>
        <SegmentedControl
          size="xs"
          aria-label="Language"
          value={way}
          onChange={setWay}
          data={[
            { value: 'sdk', label: 'TypeScript' },
            { value: 'curl', label: 'curl' },
          ]}
        />
      </Group>
      {snippetsOf(collection).map(({ title, sdk, curl }) => (
        <Block key={title} title={title} text={way === 'sdk' ? sdk : curl} />
      ))}
      {own && <Block title="The type of its rows" text={own} />}
    </Stack>
  )
}

/** How an app reads and writes the rows of a collection. */
export const Page = () => <Frame>{(collection) => <Content collection={collection} />}</Frame>
