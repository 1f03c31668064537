import { NumberInput, Select, TextInput } from '@mantine/core'

export type Plain = 'text' | 'number' | 'boolean'

export const plainOf = (value: unknown): Plain =>
  typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'boolean' : 'text'

/** A typed text as a value of a type; a text that is no number stays one. */
export const asPlain = (text: string, type: Plain): unknown => {
  if (type === 'boolean') return text === 'true'
  const number = Number(text)
  return type === 'number' && text.trim() !== '' && Number.isFinite(number) ? number : text
}

const kinds = [
  { value: 'text', label: 'Text' },
  { value: 'number', label: 'Number' },
  { value: 'boolean', label: 'Yes or no' },
]

/** Which of the three types a value has. */
export const TypeSelect = ({
  label,
  value,
  onChange,
}: {
  label: string
  value: Plain
  onChange: (type: Plain) => void
}) => (
  <Select
    aria-label={label}
    data={kinds}
    value={value}
    allowDeselect={false}
    onChange={(next) => onChange((next ?? 'text') as Plain)}
  />
)

/** One value: a text, a number, or yes and no. */
export const TypedValue = ({
  label,
  type,
  value,
  onChange,
  placeholder = 'Value',
}: {
  label: string
  type: Plain
  value: unknown
  onChange: (value: unknown) => void
  placeholder?: string
}) => {
  if (type === 'boolean')
    return (
      <Select
        aria-label={label}
        data={[
          { value: 'true', label: 'yes' },
          { value: 'false', label: 'no' },
        ]}
        value={typeof value === 'boolean' ? String(value) : null}
        placeholder={placeholder}
        allowDeselect={false}
        onChange={(next) => onChange(next === 'true')}
      />
    )
  if (type === 'number')
    return (
      <NumberInput
        aria-label={label}
        placeholder={placeholder}
        value={typeof value === 'number' ? value : ''}
        onChange={(next) => onChange(next === '' ? undefined : next)}
      />
    )
  return (
    <TextInput
      aria-label={label}
      placeholder={placeholder}
      value={value === undefined || value === null ? '' : String(value)}
      onChange={(event) => onChange(event.currentTarget.value)}
      autoComplete="off"
    />
  )
}
