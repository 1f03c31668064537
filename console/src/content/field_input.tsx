import { NumberInput, Switch, Textarea } from '@mantine/core'
import { useState } from 'react'
import { asText } from './data.ts'

/** Structured values are written as JSON: what is no JSON yet is kept as it was typed, and not handed on. */
const Structured = ({ label, value, onChange }: Props) => {
  const [text, setText] = useState(asText(value))
  const [isBad, setBad] = useState(false)
  return (
    <Textarea
      label={label}
      autosize
      minRows={2}
      maxRows={16}
      spellCheck={false}
      classNames={{ input: 'mono' }}
      value={text}
      error={isBad && 'Not complete yet: a list or an object'}
      onChange={({ currentTarget: { value: typed } }) => {
        setText(typed)
        try {
          onChange(JSON.parse(typed))
          setBad(false)
        } catch {
          setBad(true)
        }
      }}
    />
  )
}

type Props = {
  readonly label: string
  readonly value: unknown
  /** The value of another language, whose kind a missing one has, and which apps show in its place. */
  readonly instead: unknown
  readonly lang: string
  readonly onChange: (value: unknown) => void
}

/** One field of one language, by the kind of its value. */
export const FieldInput = (props: Props) => {
  const { label, value, instead, lang, onChange } = props
  const known = value ?? instead
  if (typeof known === 'boolean')
    return (
      <Switch
        label={label}
        description={value === undefined ? `As in the default language: ${instead ? 'on' : 'off'}` : undefined}
        checked={Boolean(known)}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    )
  if (typeof known === 'number')
    return (
      <NumberInput
        label={label}
        value={typeof value === 'number' ? value : ''}
        placeholder={asText(instead)}
        onChange={(next) => onChange(typeof next === 'number' ? next : undefined)}
      />
    )
  if (typeof known === 'object' && known !== null) return <Structured {...props} value={value ?? instead} />
  return (
    <Textarea
      label={label}
      lang={lang}
      autosize
      minRows={label.length > 0 && asText(known).length > 90 ? 4 : 1}
      maxRows={24}
      value={asText(value)}
      placeholder={asText(instead)}
      onChange={({ currentTarget: { value: typed } }) => onChange(typed === '' ? undefined : typed)}
    />
  )
}
