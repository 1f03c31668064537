import {
  ActionIcon,
  Button,
  Card,
  Group,
  MultiSelect,
  NumberInput,
  PasswordInput,
  SegmentedControl,
  Select,
  Stack,
  Switch,
  TagsInput,
  type TagsInputProps,
  Text,
  Textarea,
  TextInput,
  Title,
} from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import type { UseFormReturnType } from '@mantine/form'
import { Plus, Trash2 } from 'lucide-react'
import { type ComponentType, lazy, type ReactNode, Suspense, useState } from 'react'
import { Alternatives, marksOf } from './alternatives.tsx'
import { Help, Labelled } from './labelled.tsx'
import { ReferenceInput } from './reference_input.tsx'
import { referenceOf, useChoices } from './references.ts'
import { type Document, isObject, resolved, type Schema, wordsOf } from './schema.ts'

const CodeEditor = lazy(async () => ({ default: (await import('./json_editor.tsx')).CodeEditor }))

export type Values = Record<string, unknown>
export type FormState = UseFormReturnType<Values>

/** An editor for values of one shape, such as filters: `editors.ts` says for which. */
export type Editor = ComponentType<{
  readonly label: string
  readonly help: string | undefined
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly error: ReactNode
  /** The object that the value is in: the event of a filter stands there. */
  readonly beside: Values
}>
/** The editor of a named schema of the document, or of a property that may be any object. */
export type EditorOf = (
  schema: string | undefined,
  property: string,
  isAnyObject: boolean,
  path: string,
) => Editor | undefined

type Common = {
  readonly document: Document
  readonly form: FormState
  readonly editorOf: EditorOf
  /** Words that are better here than those of the document, by path. */
  readonly words: Readonly<Record<string, FieldWords>>
}
export type FieldWords = {
  readonly title?: string
  readonly help?: string
  readonly section?: string
  readonly choices?: Readonly<Record<string, string>>
  readonly from?: string
  readonly isHidden?: boolean
}
type FieldProps = Common & {
  readonly path: string
  readonly name: string
  readonly schema: Schema
  readonly isRequired: boolean
}

const valueAt = (values: Values, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (value as Values | undefined)?.[name], values)

const typeOf = ({ type, properties, items, oneOf }: Schema): string | undefined => {
  // a number, or a text where it has more digits than JavaScript keeps
  const types = oneOf ? oneOf.map((one) => one.type) : [type].flat()
  if (types.length === 2 && types.includes('string') && (types.includes('number') || types.includes('integer')))
    return 'number'
  return typeof type === 'string' ? type : properties ? 'object' : items ? 'array' : undefined
}

const choiceLabel = (value: unknown, words: FieldWords) => words.choices?.[String(value)] ?? wordsOf(String(value))

const JsonField = ({
  form,
  path,
  label,
  help,
  error,
}: {
  form: FormState
  path: string
  label: string
  help: string | undefined
  error: ReactNode
}) => {
  const value = valueAt(form.getValues(), path)
  const [first] = useState(() => (value === undefined || value === null ? '' : JSON.stringify(value, null, 2)))
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error}>
      <div className="json-field">
        <Suspense fallback={<div className="code" />}>
          <CodeEditor
            label={label}
            value={first}
            placeholder="{ }"
            onChange={(text) => {
              try {
                form.setFieldValue(path, text.trim() === '' ? undefined : JSON.parse(text))
                form.clearFieldError(path)
              } catch {
                form.setFieldError(path, 'This is not JSON yet')
              }
            }}
          />
        </Suspense>
      </div>
    </Labelled>
  )
}

/** A value of one of several shapes, told apart by the constant of a property such as `type`. */
const OneOf = (props: FieldProps & { label: string; help: string | undefined; error: ReactNode; tag: string }) => {
  const { schema, form, path, words, tag, label, help, error } = props
  const shapes = new Map(
    (schema.oneOf ?? []).map((shape) => [
      String(
        resolved(shape.properties?.[tag] ?? {}, props.document).const ??
          resolved(shape.properties?.[tag] ?? {}, props.document).enum?.[0],
      ),
      shape,
    ]),
  )
  const value = valueAt(form.getValues(), path) as Values | undefined
  const current = shapes.get(String(value?.[tag]))
  const { [tag]: _, ...rest } = current?.properties ?? {}
  const data = [...shapes.keys()].map((key) => ({ value: key, label: choiceLabel(key, words[path] ?? {}) }))
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error} isRequired={props.isRequired}>
      {data.length <= 5 ? (
        <div className="scroll-x">
          <SegmentedControl
            aria-labelledby={`${path}-label`}
            data={data}
            value={String(value?.[tag] ?? '')}
            onChange={(next) => form.setFieldValue(path, { [tag]: next })}
          />
        </div>
      ) : (
        <Select
          aria-labelledby={`${path}-label`}
          data={data}
          value={(value?.[tag] as string) ?? null}
          onChange={(next) => form.setFieldValue(path, next ? { [tag]: next } : undefined)}
        />
      )}
      {Object.keys(rest).length > 0 && (
        <Card withBorder mt="xs" p="md">
          <Fields
            {...props}
            path={path}
            schema={{ properties: rest, ...(current?.required ? { required: current.required } : {}) }}
          />
        </Card>
      )}
    </Labelled>
  )
}

const nameOfItem = (value: unknown): string | undefined => {
  const item = isObject(value) ? value : {}
  const name = item['display_name'] || item['name'] || item['title'] || item['key']
  return typeof name === 'string' ? name : undefined
}

const Listed = (props: FieldProps & { label: string; help: string | undefined; error: ReactNode }) => {
  const { schema, document, form, path, label, help, error } = props
  const items = (valueAt(form.getValues(), path) as unknown[] | undefined) ?? []
  const item = resolved(schema.items ?? {}, document)
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error}>
      <Stack gap="xs" mt={6}>
        {items.map((value, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the items have no identifier
          <Card withBorder p="md" key={at}>
            <Group justify="space-between" mb={6}>
              <Text size="sm" c="dimmed">
                {nameOfItem(value) ?? at + 1}
              </Text>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove ${label} ${at + 1}`}
                onClick={() => form.removeListItem(path, at)}
              >
                <Trash2 size={15} />
              </ActionIcon>
            </Group>
            <Fields {...props} path={`${path}.${at}`} schema={item} />
          </Card>
        ))}
        <div>
          <Button
            variant="default"
            size="xs"
            leftSection={<Plus size={14} />}
            disabled={schema.maxItems !== undefined && items.length >= schema.maxItems}
            onClick={() => form.setFieldValue(path, [...items, {}])}
          >
            Add
          </Button>
        </div>
      </Stack>
    </Labelled>
  )
}

/** Several texts, with those that the project has to choose from. */
const Tags = ({ reference, ...rest }: TagsInputProps & { reference: string | undefined }) => {
  const found = useChoices(reference, '', undefined)
  return <TagsInput {...rest} data={found?.choices.map(({ value }) => value) ?? []} />
}

/** Names with one value each, such as the amounts by currency of a reward. */
const Pairs = ({
  form,
  path,
  label,
  help,
  error,
  isNumber,
}: {
  form: FormState
  path: string
  label: string
  help: string | undefined
  error: ReactNode
  isNumber: boolean
}) => {
  const value = valueAt(form.getValues(), path)
  const [pairs, setPairs] = useState<readonly (readonly [string, unknown])[]>(() =>
    Object.entries(isObject(value) ? value : {}),
  )
  const set = (next: typeof pairs) => {
    setPairs(next)
    const whole = next.filter(([name]) => name !== '')
    form.setFieldValue(path, whole.length === 0 ? undefined : Object.fromEntries(whole))
  }
  const replaced = (at: number, pair: readonly [string, unknown]) =>
    set(pairs.map((before, n) => (n === at ? pair : before)))
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error}>
      <Stack gap={6} mt={6}>
        {pairs.map(([name, inner], at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed
          <Group key={at} gap={6} wrap="nowrap">
            <TextInput
              aria-label={`${label}, name ${at + 1}`}
              placeholder="Name"
              value={name}
              onChange={(event) => replaced(at, [event.currentTarget.value, inner])}
              flex={1}
            />
            {isNumber ? (
              <NumberInput
                aria-label={`${label}, value ${at + 1}`}
                value={(inner as number) ?? ''}
                onChange={(next) => replaced(at, [name, next])}
                flex={1}
              />
            ) : (
              <TextInput
                aria-label={`${label}, value ${at + 1}`}
                placeholder="Value"
                value={String(inner ?? '')}
                onChange={(event) => replaced(at, [name, event.currentTarget.value])}
                flex={1}
              />
            )}
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove ${name}`}
              onClick={() => set(pairs.filter((_, n) => n !== at))}
            >
              <Trash2 size={15} />
            </ActionIcon>
          </Group>
        ))}
        <div>
          <Button
            variant="default"
            size="xs"
            leftSection={<Plus size={14} />}
            onClick={() => set([...pairs, ['', isNumber ? 1 : '']])}
          >
            Add
          </Button>
        </div>
      </Stack>
    </Labelled>
  )
}

/** Long ones are written in one line, too. */
const isOneLine = (name: string) => /(^|_)(url|name|title|key|identifier)$/.test(name)
const isSecret = (name: string) => /(^|_)(password|secret|token|private_key|api_key|credentials)$/.test(name)

const Field = (props: FieldProps) => {
  const { document, form, editorOf, name, isRequired } = props
  const path = props.path ? `${props.path}.${name}` : name
  const schema = resolved(props.schema, document)
  const words = props.words[path.replace(/\.\d+/g, '')] ?? {}
  const label = words.title ?? schema.title ?? wordsOf(name)
  // what a schema of its own says is said for programmers, and its editor needs no explanation
  const own = schema.named ? document.components.schemas[schema.named]?.description : undefined
  const help = words.help ?? (schema.description === own && own !== undefined ? undefined : schema.description)
  const {
    value: _,
    defaultValue: __,
    onChange: ___,
    ...input
  } = form.getInputProps(path) as unknown as Record<string, unknown>
  const error = input['error'] as ReactNode
  const value = valueAt(form.getValues(), path)
  const set = (next: unknown) => {
    form.setFieldValue(path, next as never)
    form.setTouched({ [path]: true })
    form.clearFieldError(path)
  }
  const unset = schema['x-unset']
  const common = {
    ...input,
    label,
    description: help && <Help text={help} />,
    required: isRequired,
    name: path,
    ...(unset ? { placeholder: unset } : {}),
  }
  const type = typeOf(schema)
  const Editor = editorOf(schema.named, name, type === 'object' && schema.properties === undefined, path)
  if (Editor) {
    const inner = Object.entries(form.errors).find(([at]) => at.startsWith(`${path}.`))?.[1]
    const beside = (props.path ? valueAt(form.getValues(), props.path) : form.getValues()) as Values
    return (
      <Editor label={label} help={help} value={value} onChange={set} error={error ?? inner} beside={beside ?? {}} />
    )
  }
  if (schema.oneOf && type !== 'number') {
    const tag = ['type', 'kind', 'source', 'op'].find((key) => schema.oneOf?.every((shape) => shape.properties?.[key]))
    if (tag) return <OneOf {...props} path={path} schema={schema} label={label} help={help} error={error} tag={tag} />
    const marks = marksOf(schema.oneOf)
    if (marks)
      return (
        <Alternatives
          {...{ document, schema, path, label, help, error, isRequired, value, marks }}
          onChange={set}
          fields={(shape) => <Fields {...props} path={path} schema={shape} />}
        />
      )
    return <JsonField form={form} path={path} label={label} help={help} error={error} />
  }
  if (type === 'array') {
    const item = resolved(schema.items ?? {}, document)
    const itemType = typeOf(item)
    if (item.enum)
      return (
        <MultiSelect
          {...common}
          clearable
          data={item.enum.map((one) => ({ value: String(one), label: choiceLabel(one, words) }))}
          value={((value as unknown[]) ?? []).map(String)}
          onChange={set}
        />
      )
    if (itemType === 'string' || itemType === 'integer' || itemType === 'number')
      return (
        <Tags
          {...common}
          reference={referenceOf(name.replace(/s$/, ''), words.from ?? schema['x-form']?.from)}
          placeholder="Type one and press Enter"
          value={((value as unknown[]) ?? []).map(String)}
          onChange={(next) => set(itemType === 'string' ? next : next.map(Number))}
        />
      )
    if (Object.keys(item.properties ?? {}).length === 0)
      return <JsonField form={form} path={path} label={label} help={help} error={error} />
    return <Listed {...props} path={path} schema={schema} label={label} help={help} error={error} />
  }
  const options = schema.enum?.filter((one) => one !== null)
  if (options) {
    const data = options.map((one) => ({ value: String(one), label: choiceLabel(one, words) }))
    const isOptional = !isRequired && schema.default === undefined
    const length = data.reduce((sum, choice) => sum + choice.label.length, 0)
    if (data.length <= 4 && length <= 48 && !isOptional)
      return (
        <Labelled id={`${path}-label`} label={label} help={help} error={error} isRequired={isRequired}>
          <div className="scroll-x">
            <SegmentedControl
              aria-labelledby={`${path}-label`}
              data={data}
              value={String(value ?? '')}
              onChange={set}
            />
          </div>
        </Labelled>
      )
    return (
      <Select
        {...common}
        clearable={isOptional}
        clearButtonProps={{ 'aria-label': 'Clear' }}
        data={data}
        value={value === undefined || value === null ? null : String(value)}
        onChange={(next) => set(next ?? undefined)}
      />
    )
  }
  if (type === 'boolean') {
    const { required: _r, placeholder: _p, ...rest } = { placeholder: '', ...common }
    return (
      <Switch
        {...rest}
        error={error}
        checked={value === true}
        onChange={(event) => set(event.currentTarget.checked)}
        mt={4}
      />
    )
  }
  if (type === 'integer' || type === 'number')
    return (
      <NumberInput
        {...common}
        value={(value as number | undefined) ?? ''}
        onChange={(next) => set(next === '' ? undefined : next)}
        allowDecimal={type === 'number'}
        thousandSeparator=","
        {...(schema.minimum === undefined ? {} : { min: schema.minimum })}
        {...(schema.maximum === undefined || schema.maximum > 1e12 ? {} : { max: schema.maximum })}
      />
    )
  if (type === 'object') {
    if (schema.properties)
      return (
        <Labelled id={`${path}-label`} label={label} help={help} error={error} isRequired={isRequired}>
          <Card withBorder mt={4} p="md">
            <Fields {...props} path={path} schema={schema} />
          </Card>
        </Labelled>
      )
    const inner = isObject(schema.additionalProperties)
      ? resolved(schema.additionalProperties as Schema, document)
      : undefined
    const innerType = inner && typeOf(inner)
    if (innerType === 'string' || innerType === 'integer' || innerType === 'number')
      return <Pairs form={form} path={path} label={label} help={help} error={error} isNumber={innerType !== 'string'} />
    return <JsonField form={form} path={path} label={label} help={help} error={error} />
  }
  if (type === 'string') {
    const reference = referenceOf(name, words.from ?? schema['x-form']?.from)
    if (reference)
      return <ReferenceInput {...common} reference={reference} value={value as string | undefined} onChange={set} />
    if (schema.format === 'date-time')
      return (
        <DateTimePicker
          {...common}
          clearable
          clearButtonProps={{ 'aria-label': 'Clear' }}
          valueFormat="D MMM YYYY, HH:mm"
          value={value ? new Date(String(value)) : null}
          onChange={(next) => set(next ? new Date(next).toISOString() : undefined)}
        />
      )
    const text = (value as string | undefined) ?? ''
    const onChange = (event: { currentTarget: { value: string } }) => set(event.currentTarget.value)
    const bounds = schema.maxLength === undefined ? {} : { maxLength: schema.maxLength }
    if (isSecret(name))
      return <PasswordInput {...common} {...bounds} value={text} onChange={onChange} autoComplete="new-password" />
    if ((schema.maxLength ?? 0) > 300 && !isOneLine(name))
      return <Textarea {...common} {...bounds} value={text} onChange={onChange} rows={3} />
    return <TextInput {...common} {...bounds} value={text} onChange={onChange} autoComplete="off" />
  }
  return <JsonField form={form} path={path} label={label} help={help} error={error} />
}

const isShort = (name: string, schema: Schema, words: FieldWords): boolean => {
  // choices beside each other need the width
  const length = schema.enum?.reduce<number>((sum, one) => sum + choiceLabel(one, words).length, 0) ?? 0
  if (schema.enum && schema.enum.length <= 4 && length > 24) return false
  const type = typeOf(schema)
  if ((schema.oneOf && type !== 'number') || type === 'array' || type === 'object' || type === undefined) return false
  return !(type === 'string' && (schema.maxLength ?? 0) > 300 && !isOneLine(name))
}

/** The controls of an object's properties: required ones first unless the declaration orders them, short ones in pairs. */
export const Fields = ({
  schema,
  path = '',
  ...rest
}: Common & { readonly schema: Schema; readonly path?: string }) => {
  const { document, words } = rest
  const all = Object.entries(schema.properties ?? {})
    .map(([name, property]) => ({ name, property, known: resolved(property, document) }))
    .filter(({ name }) => !words[path ? `${path}.${name}`.replace(/\.\d+/g, '') : name]?.isHidden)
  const rank = ({ name, known }: (typeof all)[number]) =>
    known['x-form']?.order ?? (schema.required?.includes(name) ? 0 : 100)
  return (
    <div className="pair">
      {all
        .sort((one, other) => rank(one) - rank(other))
        .map(({ name, property, known }) => (
          <div
            key={name}
            className={
              isShort(name, known, words[path ? `${path}.${name}`.replace(/\.\d+/g, '') : name] ?? {})
                ? undefined
                : 'wide'
            }
          >
            <Field
              {...rest}
              path={path}
              name={name}
              schema={property}
              isRequired={schema.required?.includes(name) ?? false}
            />
          </div>
        ))}
    </div>
  )
}

/** The fields of a form in cards, one for each section that the declaration names. */
export const Sections = ({ schema, ...rest }: Common & { readonly schema: Schema }) => {
  const { document, words } = rest
  const sections = new Map<string, Record<string, Schema>>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const section = words[name]?.section ?? resolved(property, document)['x-form']?.section ?? ''
    sections.set(section, { ...sections.get(section), [name]: property })
  }
  // in the order of the words that name them, where there are some
  const named = Object.values(words).flatMap(({ section }) => section ?? [])
  const place = (title: string) => (named.includes(title) ? named.indexOf(title) : named.length)
  const ordered = [...sections].sort(([one], [other]) => place(one) - place(other))
  const shown = ordered.filter(([, properties]) => Object.keys(properties).some((name) => !words[name]?.isHidden))
  return (
    <Stack gap="md">
      {shown.map(([title, properties]) => (
        <section key={title} className="card" aria-label={title || undefined}>
          {title && (
            <Title order={2} mb="sm">
              {title}
            </Title>
          )}
          <Fields {...rest} schema={{ ...schema, properties }} />
        </section>
      ))}
    </Stack>
  )
}
