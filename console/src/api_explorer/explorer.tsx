import {
  Anchor,
  Button,
  Group,
  PasswordInput,
  SegmentedControl,
  Select,
  Skeleton,
  Stack,
  Text,
  TextInput,
} from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Play } from 'lucide-react'
import { useState } from 'react'
import { createUserSession, listUsers } from '../../../sdk/src/generated/admin.ts'
import { accessToken, call } from '../api.ts'
import { editorOf } from '../parts/form/editors.ts'
import type { Values } from '../parts/form/field.ts'
import { Fields } from '../parts/form/fields.tsx'
import { bodyOf, bodySchema, initialOf } from '../parts/form/schema.ts'
import { Card, PageHead, useAddress, useProject } from '../parts/page.tsx'
import { Failure } from '../parts/states.tsx'
import { type Answer, AnswerView } from './answer.tsx'
import { type Document, operationsOf, parametersOf, useWholeDocument } from './document.ts'

const isServerKey = (key: string) => /_sk_/.test(key)

const UserChoice = ({ value, onChange }: { value: string | undefined; onChange: (id: string | undefined) => void }) => {
  const { path } = useProject()
  const [text, setText] = useState('')
  const { data } = useQuery({
    queryKey: ['choices', path.projectId, 'users', text],
    queryFn: () => call(listUsers, { path, query: { limit: 20, ...(text ? { search: text } : {}) } }),
    placeholderData: (before) => before,
  })
  return (
    <Select
      label="User"
      searchable
      filter={({ options }) => options}
      onSearchChange={setText}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      data={(data?.data ?? []).map(({ id, display_name, email }) => ({
        value: id,
        label: display_name ?? email ?? 'Anonymous user',
      }))}
    />
  )
}

const Try = ({ operation, document }: { operation: string; document: Document }) => {
  const { projectId, path: project } = useProject()
  const [, path = ''] = operation.split(' ')
  const isClient = path.startsWith('/v1/client')
  const schema = bodySchema(operation, document)
  const before = schema ? initialOf(schema, document, {}) : {}
  const form = useForm<Values>({ initialValues: before })
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const [as, setAs] = useState<string>()
  const [key, setKey] = useState('')
  const names = { path: parametersOf(document, operation, 'path'), query: parametersOf(document, operation, 'query') }
  const run = useMutation({
    mutationFn: async (): Promise<Answer> => {
      const [method = 'GET'] = operation.split(' ')
      const filled = path
        .replace('{projectId}', projectId)
        .replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(texts[name] ?? ''))
      const query = new URLSearchParams(
        names.query.flatMap(({ name }) => (texts[name] ? [[name, texts[name]] as [string, string]] : [])),
      )
      let token = accessToken()
      const headers: Record<string, string> = {}
      if (isClient) {
        if (!as) throw new Error('Choose the user whose app calls.')
        headers['x-api-key'] = key
        if (isServerKey(key)) {
          token = undefined
          headers['x-on-behalf-of'] = as
        } else {
          const { data } = await call(createUserSession, { path: { ...project, userId: as } })
          token = (data as unknown as { session_token: string }).session_token
        }
      }
      const body =
        schema && method !== 'GET' ? { body: JSON.stringify(bodyOf(schema, document, form.getValues(), before)) } : {}
      if (body.body) headers['content-type'] = 'application/json'
      const began = performance.now()
      const answer = await fetch(`${filled}${query.size > 0 ? `?${query}` : ''}`, {
        method,
        headers: { ...headers, ...(token ? { authorization: `Bearer ${token}` } : {}) },
        ...body,
      })
      const text = await answer.text()
      const milliseconds = Math.round(performance.now() - began)
      const isJson = answer.headers.get('content-type')?.startsWith('application/json')
      return { status: answer.status, milliseconds, text: isJson ? JSON.stringify(JSON.parse(text), null, 2) : text }
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        run.mutate()
      }}
    >
      <div className="split">
        <Card title="Request">
          <Stack gap="sm">
            {isClient && (
              <>
                <UserChoice value={as} onChange={setAs} />
                <PasswordInput
                  label="Key of the project"
                  description="A server key calls for any user; a client key signs the user in, in projects for development. It stays in this page."
                  autoComplete="off"
                  value={key}
                  onChange={(event) => setKey(event.currentTarget.value)}
                />
              </>
            )}
            {[...names.path, ...names.query].map(({ name, required }) => (
              <TextInput
                key={name}
                label={name}
                required={required ?? false}
                value={texts[name] ?? ''}
                onChange={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })}
                autoComplete="off"
              />
            ))}
            {schema && <Fields schema={schema} document={document} form={form} editorOf={editorOf} words={{}} />}
            <Group justify="flex-end">
              <Button type="submit" leftSection={<Play size={14} />} loading={run.isPending}>
                Send
              </Button>
            </Group>
          </Stack>
        </Card>
        <Card title="Answer">
          {run.error && <Failure error={run.error} />}
          {run.data ? (
            <AnswerView answer={run.data} />
          ) : (
            <Text size="sm" c="dimmed">
              It appears here.
            </Text>
          )}
        </Card>
      </div>
    </form>
  )
}

/** Any call of the API, tried as the developer or as a user of the app. */
export const Page = () => {
  const document = useWholeDocument()
  const [{ operation, side = 'admin' }, setAddress] = useAddress<'operation' | 'side'>()
  if (!document)
    return (
      <>
        <PageHead title="Try a call" />
        <Skeleton h={240} />
      </>
    )
  const all = operationsOf(document)
  const shown = all.filter(({ value }) => value.includes('/v1/client') === (side === 'client'))
  const chosen = all.find(({ value }) => value === operation)
  return (
    <>
      <PageHead
        title="Try a call"
        about="Any call of the API, as you or as a user of your app"
        actions={
          <Group gap="md">
            <Anchor href="/docs" size="sm">
              Reference
            </Anchor>
          </Group>
        }
      />
      <Group mb="md" align="flex-end">
        <SegmentedControl
          aria-label="Who calls"
          value={side}
          onChange={(next) => setAddress({ side: next, operation: undefined })}
          data={[
            { value: 'admin', label: 'As you' },
            { value: 'client', label: 'As a user' },
          ]}
        />
        <Select
          aria-label="Call"
          placeholder="Choose a call"
          searchable
          limit={80}
          flex={1}
          maw={640}
          data={shown.map(({ value, label }) => ({ value, label }))}
          value={operation ?? null}
          onChange={(next) => setAddress({ operation: next ?? undefined })}
        />
      </Group>
      {chosen && (
        <>
          <Text size="sm" c="dimmed" mb="sm">
            {chosen.about}
          </Text>
          <Try key={chosen.value} operation={chosen.value} document={document} />
        </>
      )}
    </>
  )
}
