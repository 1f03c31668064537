import { Input, NumberInput, SegmentedControl, TextInput } from '@mantine/core'
import { useState } from 'react'
import { JsonCode } from '../parts/form/json_code.tsx'

/** A value of a declared type: on and off, a number, a text, or a structured one. */
export const ValueInput = ({
  label,
  help,
  type,
  value,
  onChange,
  words = ['on', 'off'],
}: {
  label: string
  help?: string
  type: string
  value: unknown
  onChange: (value: unknown) => void
  words?: readonly [string, string]
}) => {
  const [first] = useState(() => JSON.stringify(value ?? {}, null, 2))
  const [isBroken, setBroken] = useState(false)
  const common = { label, ...(help ? { description: help } : {}) }
  if (type === 'boolean')
    return (
      <Input.Wrapper {...common} labelElement="div">
        <div>
          <SegmentedControl
            aria-label={label}
            value={String(value === true)}
            onChange={(next) => onChange(next === 'true')}
            data={[
              { value: 'true', label: words[0] },
              { value: 'false', label: words[1] },
            ]}
          />
        </div>
      </Input.Wrapper>
    )
  if (type === 'number')
    return (
      <NumberInput
        {...common}
        value={typeof value === 'number' ? value : ''}
        onChange={(next) => onChange(next === '' ? undefined : Number(next))}
      />
    )
  if (type === 'string')
    return (
      <TextInput
        {...common}
        value={typeof value === 'string' ? value : ''}
        onChange={(event) => onChange(event.currentTarget.value)}
        autoComplete="off"
      />
    )
  return (
    <Input.Wrapper {...common} labelElement="div" error={isBroken && 'This is not JSON yet'}>
      <div className="json-field">
        <JsonCode
          label={label}
          value={first}
          onChange={(text) => {
            try {
              onChange(JSON.parse(text))
              setBroken(false)
            } catch {
              setBroken(true)
            }
          }}
        />
      </div>
    </Input.Wrapper>
  )
}
