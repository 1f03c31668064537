import { Card } from '@mantine/core'
import type { Frame, InnerFields } from './field.ts'
import { Labelled } from './labelled.tsx'
import { type Document, isObject, resolved, type Schema, wordsOf } from './schema.ts'
import { Segments } from './segments.tsx'

/** The property of each shape that it requires and no other shape has, by which an editor tells them apart. */
export const marksOf = (shapes: readonly Schema[]): readonly string[] | undefined => {
  const marks = shapes.map(({ required = [] }, at) =>
    required.find((name) => shapes.every((other, n) => n === at || other.properties?.[name] === undefined)),
  )
  return marks.every((mark) => mark !== undefined) ? marks : undefined
}

/** A value of one of several shapes, each of which has a property of its own, such as the audience of a campaign. */
export const Alternatives = ({
  schema,
  document,
  marks,
  frame,
  value,
  onChange,
  fields,
}: {
  schema: Schema
  document: Document
  marks: readonly string[]
  frame: Frame
  value: unknown
  onChange: (value: unknown) => void
  fields: InnerFields
}) => {
  const { path, label, help, error, isRequired } = frame
  const chosen = marks.findIndex((mark) => isObject(value) && mark in value)
  const shape = schema.oneOf?.[chosen]
  const known = (at: number) => resolved(schema.oneOf?.[at]?.properties?.[marks[at] ?? ''] ?? {}, document)
  // what has one value only is chosen with its shape
  const rest = Object.entries(shape?.properties ?? {}).filter(
    ([, part]) => resolved(part, document).const === undefined,
  )
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error} isRequired={isRequired}>
      <Segments
        labelId={`${path}-label`}
        data={marks.map((mark, at) => ({ value: mark, label: known(at).title ?? wordsOf(mark) }))}
        value={marks[chosen] ?? ''}
        onChange={(mark) => onChange({ [mark]: known(marks.indexOf(mark)).const })}
      />
      {rest.length > 0 && (
        <Card withBorder mt="xs" p="md">
          {fields(
            { properties: Object.fromEntries(rest), ...(shape?.required ? { required: shape.required } : {}) },
            path,
          )}
        </Card>
      )}
    </Labelled>
  )
}
