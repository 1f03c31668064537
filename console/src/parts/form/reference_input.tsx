import { Autocomplete, Select } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { useChoices } from './references.ts'

type Props = {
  readonly reference: string
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
  readonly label?: ReactNode
  readonly 'aria-label'?: string
  readonly description?: ReactNode
  readonly error?: ReactNode
  readonly required?: boolean
  readonly placeholder?: string
  readonly clearable?: boolean
}

/** A value that comes from a list of the project, by its name: searched, and typed where the server may not have met it yet. */
export const ReferenceInput = ({ reference, value, onChange, clearable = true, ...common }: Props) => {
  const [text, setText] = useState('')
  const found = useChoices(reference, text, value)
  if (found?.isFree)
    return (
      <Autocomplete
        {...common}
        data={found.choices.map((choice) => choice.value)}
        renderOption={({ option }) => found.choices.find((choice) => choice.value === option.value)?.label}
        value={value ?? ''}
        onChange={(next) => onChange(next || undefined)}
        maxDropdownHeight={260}
        limit={100}
      />
    )
  return (
    <Select
      {...common}
      searchable
      clearable={clearable}
      clearButtonProps={{ 'aria-label': 'Clear' }}
      data={[...(found?.choices ?? [])]}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      onSearchChange={setText}
      {...(found?.isSearched ? { filter: ({ options }) => options } : {})}
      nothingFoundMessage={found?.isFetching ? 'Searching…' : 'Nothing of that name'}
      maxDropdownHeight={260}
      limit={100}
    />
  )
}

/** What a value of a list is called, such as the name of a segment. */
export const ReferenceName = ({ reference, value }: { reference: string; value: string }) => {
  const found = useChoices(reference, '', value)
  const label = found?.choices.find((choice) => choice.value === value)?.label
  return label && label !== value ? label : <span className="mono">{value.slice(0, 8)}</span>
}
