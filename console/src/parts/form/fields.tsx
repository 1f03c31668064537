import { Card, NumberInput, Switch } from '@mantine/core'
import type { ReactNode } from 'react'
import { Alternatives, marksOf } from './alternatives.tsx'
import { ChoiceField } from './choice_field.tsx'
import {
  type Control,
  choiceLabel,
  type FieldWords,
  type FormProps,
  type InnerFields,
  isOneLine,
  type Values,
  valueAt,
} from './field.ts'
import { JsonField } from './json_field.tsx'
import { Help, Labelled } from './labelled.tsx'
import { isPlainItem, ListField } from './list_field.tsx'
import { Listed } from './listed.tsx'
import { OneOf, tagOf } from './one_of.tsx'
import { Pairs } from './pairs.tsx'
import { isObject, resolved, type Schema, typeOf, wordsOf } from './schema.ts'
import { SecondsField } from './seconds_field.tsx'
import { TextField } from './text_field.tsx'

/** The words of a path, whichever item of a list it is in. */
const wordsAt = (words: FormProps['words'], path: string): FieldWords => words[path.replace(/\.\d+/g, '')] ?? {}
const within = (path: string, name: string) => (path ? `${path}.${name}` : name)

type FieldProps = FormProps & {
  /** Of the object that the property is in. */
  readonly path: string
  readonly name: string
  readonly schema: Schema
  readonly isRequired: boolean
}

/** What the control of a property is given: its value, its words, and how it is changed. */
const controlOf = (props: FieldProps): Control => {
  const { document, form, name, isRequired } = props
  const path = within(props.path, name)
  const schema = resolved(props.schema, document)
  const words = wordsAt(props.words, path)
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
  const unset = schema['x-unset']
  return {
    name,
    schema,
    words,
    frame: { path, label, help, error, isRequired },
    value: valueAt(form.getValues(), path),
    set: (next) => {
      form.setFieldValue(path, next as never)
      form.setTouched({ [path]: true })
      form.clearFieldError(path)
    },
    common: {
      ...input,
      error,
      label,
      description: help && <Help text={help} />,
      required: isRequired,
      name: path,
      ...(unset ? { placeholder: unset } : {}),
    },
  }
}

/** An object: its fields in a card, or its pairs of names and values. */
const ObjectField = ({ control, fields, ...props }: FieldProps & { control: Control; fields: InnerFields }) => {
  const { schema, frame } = control
  if (schema.properties)
    return (
      <Labelled
        id={`${frame.path}-label`}
        label={frame.label}
        help={frame.help}
        error={frame.error}
        isRequired={frame.isRequired}
      >
        <Card withBorder mt={4} p="md">
          {fields(schema, frame.path)}
        </Card>
      </Labelled>
    )
  const inner = isObject(schema.additionalProperties)
    ? typeOf(resolved(schema.additionalProperties as Schema, props.document))
    : undefined
  if (inner === 'string' || inner === 'integer' || inner === 'number')
    return <Pairs form={props.form} frame={frame} isNumber={inner !== 'string'} />
  return <JsonField form={props.form} frame={frame} />
}

/** One property, with the control that its schema asks for. */
const Field = (props: FieldProps) => {
  const { document, form, editorOf, words } = props
  const control = controlOf(props)
  const { name, schema, frame, value, set, common } = control
  const fields: InnerFields = (inner, path) => <Fields {...props} path={path} schema={inner} />
  const type = typeOf(schema)
  const Editor = editorOf(schema.named, name, type === 'object' && schema.properties === undefined, frame.path)
  if (Editor) {
    const { path, label, help, error } = frame
    const inner = Object.entries(form.errors).find(([at]) => at.startsWith(`${path}.`))?.[1]
    const beside = (props.path ? valueAt(form.getValues(), props.path) : form.getValues()) as Values
    return (
      <Editor label={label} help={help} value={value} onChange={set} error={error ?? inner} beside={beside ?? {}} />
    )
  }
  if (schema.oneOf && type !== 'number') {
    const tag = tagOf(schema.oneOf)
    if (tag) return <OneOf {...{ form, document, words, frame, schema, tag, fields }} />
    const marks = marksOf(schema.oneOf)
    if (marks) return <Alternatives {...{ document, schema, frame, value, marks, fields }} onChange={set} />
    return <JsonField form={form} frame={frame} />
  }
  if (type === 'array') {
    const item = resolved(schema.items ?? {}, document)
    if (isPlainItem(item)) return <ListField {...control} item={item} />
    if (Object.keys(item.properties ?? {}).length === 0) return <JsonField form={form} frame={frame} />
    return <Listed {...{ form, frame, item, fields }} maxItems={schema.maxItems} />
  }
  const options = schema.enum?.filter((one) => one !== null)
  if (options) return <ChoiceField {...control} options={options} />
  if (type === 'boolean') {
    const { required: _, placeholder: __, ...rest } = common
    return <Switch {...rest} checked={value === true} onChange={(event) => set(event.currentTarget.checked)} mt={4} />
  }
  if (type === 'integer' && name.endsWith('_seconds')) return <SecondsField {...control} />
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
  if (type === 'object') return <ObjectField {...props} control={control} fields={fields} />
  if (type === 'string') return <TextField {...control} />
  return <JsonField form={form} frame={frame} />
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
}: FormProps & { readonly schema: Schema; readonly path?: string }) => {
  const { document } = rest
  const isRequired = (name: string) => schema.required?.includes(name) ?? false
  const rank = (name: string, known: Schema) => known['x-form']?.order ?? (isRequired(name) ? 0 : 100)
  return (
    <div className="pair">
      {Object.entries(schema.properties ?? {})
        .map(([name, property]) => ({
          name,
          property,
          known: resolved(property, document),
          words: wordsAt(rest.words, within(path, name)),
        }))
        .filter(({ words }) => !words.isHidden)
        .sort((one, other) => rank(one.name, one.known) - rank(other.name, other.known))
        .map(({ name, property, known, words }) => (
          <div key={name} className={isShort(name, known, words) ? undefined : 'wide'}>
            <Field {...rest} path={path} name={name} schema={property} isRequired={isRequired(name)} />
          </div>
        ))}
    </div>
  )
}
