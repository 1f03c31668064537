import { Select } from '@mantine/core'
import { type Control, choiceLabel } from './field.ts'
import { Labelled } from './labelled.tsx'
import { Segments } from './segments.tsx'

/** One of several values: beside each other where they are few, else in a list. */
export const ChoiceField = ({ options, ...control }: Control & { readonly options: readonly unknown[] }) => {
  const { schema, words, frame, value, set, common } = control
  const { path, label, help, error, isRequired } = frame
  const data = options.map((one) => ({ value: String(one), label: choiceLabel(one, words) }))
  const isOptional = !isRequired && schema.default === undefined
  const length = data.reduce((sum, choice) => sum + choice.label.length, 0)
  if (data.length <= 4 && length <= 48 && !isOptional)
    return (
      <Labelled id={`${path}-label`} label={label} help={help} error={error} isRequired={isRequired}>
        <Segments labelId={`${path}-label`} data={data} value={String(value ?? '')} onChange={set} />
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
