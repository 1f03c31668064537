import { PasswordInput, Textarea, TextInput } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { type Control, isOneLine } from './field.ts'
import { ReferenceInput } from './reference_input.tsx'
import { referenceOf } from './references.ts'

const isSecret = (name: string) => /(^|_)(password|secret|token|private_key|api_key|credentials)$/.test(name)

/** A text: a reference to something of the project, a time, a secret, a line or a paragraph. */
export const TextField = ({ name, schema, words, value, set, common }: Control) => {
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
  const typed = {
    ...common,
    ...(schema.maxLength === undefined ? {} : { maxLength: schema.maxLength }),
    value: (value as string | undefined) ?? '',
    onChange: (event: { currentTarget: { value: string } }) => set(event.currentTarget.value),
  }
  if (isSecret(name)) return <PasswordInput {...typed} autoComplete="new-password" />
  if ((schema.maxLength ?? 0) > 300 && !isOneLine(name)) return <Textarea {...typed} rows={3} />
  return <TextInput {...typed} autoComplete="off" />
}
