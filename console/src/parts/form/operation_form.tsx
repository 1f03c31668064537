import { Button, Code, CopyButton, Group, Stack, Text, Title } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useMemo } from 'react'
import { callAny, type Row, TrellisError } from '../../api.ts'
import { FormFoot } from '../form_foot.tsx'
import { useProject } from '../page.tsx'
import { useRefresh } from '../states.tsx'
import { useUnsaved } from '../unsaved.tsx'
import { editorOf } from './editors.ts'
import type { Values } from './field.ts'
import { Fields } from './fields.tsx'
import type { OperationFormProps } from './form.tsx'
import { bodyOf, bodySchema, type Document, fieldOf, initialOf } from './schema.ts'
import { Sections } from './sections.tsx'

const keyFrom = (name: unknown, separator: string) =>
  String(name ?? '')
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^a-z0-9]+/g, separator)
    .replace(new RegExp(`^\\${separator}|\\${separator}$`, 'g'), '')
    .slice(0, 60)

/** In one of the next frames: on a busy machine the error is not drawn in the first. */
const focusFirstError = (frames = 60): number =>
  requestAnimationFrame(() => {
    const field = document.querySelector<HTMLElement>('[aria-invalid=true], [data-error] input')
    if (!field && frames > 0) focusFirstError(frames - 1)
    field?.focus()
    field?.scrollIntoView({ block: 'center' })
  })

const Request = ({ operation, path, body }: { operation: string; path: Row; body: unknown }) => {
  const [method, pattern = ''] = operation.split(' ')
  const filled = pattern.replace(/\{(\w+)\}/g, (_, name: string) => String(path[name] ?? `{${name}}`))
  const text = `curl ${method === 'POST' ? '' : `-X ${method} `}${location.origin}${filled} \\\n  -H "authorization: Bearer $TOKEN" \\\n  -H "content-type: application/json" \\\n  -d '${JSON.stringify(body, null, 2).replace(/'/g, "'\\''")}'`
  return (
    <aside className="card sticky" aria-label="The same as a request">
      <Stack gap="sm">
        <Group justify="space-between">
          <Title order={2}>The same as a request</Title>
          <CopyButton value={text}>
            {({ copied, copy }) => (
              <Button size="compact-xs" variant="default" onClick={copy}>
                {copied ? 'Copied' : 'Copy'}
              </Button>
            )}
          </CopyButton>
        </Group>
        <Code block tabIndex={0}>
          {text}
        </Code>
        <Text size="xs" c="dimmed">
          What is left as it was is not sent.
        </Text>
      </Stack>
    </aside>
  )
}

/** The form, where the part of the document that has its body is loaded. */
export const LoadedForm = ({ document, ...props }: OperationFormProps & { document: Document }) => {
  const schema = useMemo(() => bodySchema(props.operation, document) ?? {}, [props.operation, document])
  const {
    operation,
    path = {},
    row = {},
    preset = {},
    fixed = {},
    verb,
    words = {},
    onDone,
    onCancel,
    isPage = false,
  } = props
  const { path: project } = useProject()
  const refresh = useRefresh()
  const before = useMemo(() => initialOf(schema, document, row), [schema, document, row])
  const form = useForm<Values>({ initialValues: { ...before, ...preset } })
  const values = form.getValues()
  const body = { ...bodyOf(schema, document, values, before), ...fixed }
  // a key, or what is said to be made from another field of the form, such as the code of a currency
  const derived = Object.entries(schema.properties ?? {}).find(([name, property]) => {
    const from = property['x-form']?.from
    return props.row === undefined && (name === 'key' || (from !== undefined && from in (schema.properties ?? {})))
  })
  const [target = '', made] = derived ?? []
  const source = made?.['x-form']?.from ?? 'name'
  // it follows the name until somebody writes it
  useEffect(() => {
    if (!made || form.isTouched(target) || preset[target] !== undefined) return
    const key = keyFrom(values[source], made.pattern?.includes('-') === false ? '_' : '-')
    form.setFieldValue(target, (made.pattern?.startsWith('^[A-Z]') ? key.toUpperCase().slice(0, 16) : key) || undefined)
  }, [values[source]])
  const work = useMutation({
    mutationFn: () => callAny(operation, { path: { ...project, ...path }, body }),
    onSuccess: async ({ data }) => {
      onDone(data)
      await refresh()
    },
    onError: (error) => {
      const field = error instanceof TrellisError ? fieldOf(error.details) : undefined
      if (!field) return
      form.setFieldError(field, (error as Error).message)
      focusFirstError()
    },
  })
  useUnsaved(bodyOf(schema, document, values, { ...before, ...preset }), work)
  const common = { schema, document, form, editorOf, words }
  const submit = (event: { preventDefault(): void; stopPropagation(): void }) => {
    event.preventDefault()
    event.stopPropagation()
    const missing = (schema.required ?? []).filter((name) => {
      const value = values[name]
      return (
        (value === undefined || value === '' || value === null) && fixed[name] === undefined && !words[name]?.isHidden
      )
    })
    for (const name of missing) form.setFieldError(name, 'Needed')
    if (missing.length > 0) focusFirstError()
    else work.mutate()
  }
  const foot = (
    <FormFoot
      verb={verb}
      work={work}
      onCancel={onCancel}
      isDisabled={props.row !== undefined && Object.keys(body).length === 0}
    />
  )
  if (!isPage)
    return (
      <form onSubmit={submit} noValidate>
        {props.children}
        <Fields {...common} />
        {foot}
      </form>
    )
  return (
    <form onSubmit={submit} noValidate>
      <div className="form">
        <div>
          {props.children}
          <Sections {...common} />
          {foot}
        </div>
        <Request operation={operation} path={{ ...project, ...path }} body={body} />
      </div>
    </form>
  )
}
