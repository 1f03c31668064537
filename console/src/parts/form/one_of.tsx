import { Card, Select } from '@mantine/core'
import { choiceLabel, type FormProps, type Frame, type InnerFields, type Values, valueAt } from './field.ts'
import { Labelled } from './labelled.tsx'
import { resolved, type Schema } from './schema.ts'
import { Segments } from './segments.tsx'

/** The property whose constant tells the shapes apart, such as `type`. */
export const tagOf = (shapes: readonly Schema[]): string | undefined =>
  ['type', 'kind', 'source', 'op'].find((key) => shapes.every((shape) => shape.properties?.[key]))

/** A value of one of several shapes, told apart by the constant of a property such as `type`. */
export const OneOf = ({
  form,
  document,
  words,
  frame,
  schema,
  tag,
  fields,
}: Pick<FormProps, 'form' | 'document' | 'words'> & {
  frame: Frame
  schema: Schema
  tag: string
  fields: InnerFields
}) => {
  const { path, label, help, error, isRequired } = frame
  const shapes = new Map(
    (schema.oneOf ?? []).map((shape) => {
      const constant = resolved(shape.properties?.[tag] ?? {}, document)
      return [String(constant.const ?? constant.enum?.[0]), shape]
    }),
  )
  const value = valueAt(form.getValues(), path) as Values | undefined
  const current = shapes.get(String(value?.[tag]))
  const { [tag]: _, ...rest } = current?.properties ?? {}
  const data = [...shapes.keys()].map((key) => ({ value: key, label: choiceLabel(key, words[path] ?? {}) }))
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error} isRequired={isRequired}>
      {data.length <= 5 ? (
        <Segments
          labelId={`${path}-label`}
          data={data}
          value={String(value?.[tag] ?? '')}
          onChange={(next) => form.setFieldValue(path, { [tag]: next })}
        />
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
          {fields({ properties: rest, ...(current?.required ? { required: current.required } : {}) }, path)}
        </Card>
      )}
    </Labelled>
  )
}
