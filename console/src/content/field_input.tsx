import { NumberInput, Switch, Textarea } from '@mantine/core'
import { useState } from 'react'
import { asText } from './data.ts'
import type { Declared } from './kinds.ts'

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
  /** What the schema of the type says of it, where there is one. */
  readonly declared?: Declared | undefined
  readonly onChange: (value: unknown) => void
}

/** How a field is written: as its type is declared, else by the kind of its value. */
const kindOf = (declared: Declared | undefined, known: unknown): string => {
  if (declared) return declared.type
  if (typeof known === 'object' && known !== null) return 'json'
  return typeof known === 'boolean' || typeof known === 'number' ? typeof known : 'text'
}

const hints: Readonly<Record<string, string>> = {
  markdown: 'Markdown',
  date: 'A date or a time, such as 2026-12-24 or 2026-12-24T18:00:00Z',
  media: 'The id of a file',
  reference: 'The id or the key of an entry',
}

/** One field of one language. */
export const FieldInput = (props: Props) => {
  const { label, value, instead, lang, declared, onChange } = props
  const known = value ?? instead
  const kind = kindOf(declared, known)
  const isRequired = declared?.required === true
  const hint = hints[kind]
  if (kind === 'boolean')
    return (
      <Switch
        label={label}
        description={value === undefined ? `As in the default language: ${instead ? 'on' : 'off'}` : undefined}
        checked={Boolean(known)}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    )
  if (kind === 'number')
    return (
      <NumberInput
        label={label}
        withAsterisk={isRequired}
        value={typeof value === 'number' ? value : ''}
        placeholder={asText(instead)}
        onChange={(next) => onChange(typeof next === 'number' ? next : undefined)}
      />
    )
  if (kind === 'json') return <Structured {...props} value={value ?? (instead === '' ? undefined : instead)} />
  const isLong = kind === 'markdown' || (label.length > 0 && asText(known).length > 90)
  return (
    <Textarea
      label={label}
      {...(hint ? { description: hint } : {})}
      withAsterisk={isRequired}
      lang={lang}
      autosize
      minRows={isLong ? 4 : 1}
      maxRows={24}
      value={asText(value)}
      placeholder={asText(instead)}
      onChange={({ currentTarget: { value: typed } }) => onChange(typed === '' ? undefined : typed)}
    />
  )
}
