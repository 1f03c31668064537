import { ActionIcon, Select, TagsInput, Textarea, TextInput } from '@mantine/core'
import { Trash2 } from 'lucide-react'
import { type Case, type Expected, expectedWords } from './cases.ts'
import type { placeholdersOf } from './data.ts'

/** One case of an evaluation: what is asked, what fills the instructions, and what the answer must be like. */
export const CaseEditor = ({
  one,
  place,
  marks,
  error,
  onChange,
  onRemove,
}: {
  one: Case
  place: number
  marks: ReturnType<typeof placeholdersOf>
  error: string | undefined
  onChange: (next: Case) => void
  onRemove: () => void
}) => (
  <fieldset className="condition" aria-label={`Case ${place}`}>
    <div className="grow-all">
      <Textarea
        label={`Case ${place}: what a user asks`}
        placeholder="What is the capital of France?"
        rows={2}
        value={one.message}
        onChange={(event) => onChange({ ...one, message: event.currentTarget.value })}
      />
    </div>
    {marks.map(({ name, fallback }) => (
      <TextInput
        key={name}
        label={name}
        placeholder={fallback || 'nothing'}
        autoComplete="off"
        value={one.values[name] ?? ''}
        onChange={(event) => onChange({ ...one, values: { ...one.values, [name]: event.currentTarget.value } })}
      />
    ))}
    <Select
      label="The answer"
      allowDeselect={false}
      data={Object.entries(expectedWords).map(([value, label]) => ({ value, label }))}
      value={one.expected}
      onChange={(next) => onChange({ ...one, expected: (next ?? 'contains') as Expected })}
    />
    {one.expected === 'fields' ? (
      <TagsInput
        label="Fields"
        placeholder={one.fields.length === 0 ? 'Type one, press Enter' : ''}
        splitChars={[',', ' ']}
        acceptValueOnBlur
        value={[...one.fields]}
        error={error}
        onChange={(fields) => onChange({ ...one, fields })}
      />
    ) : (
      <TextInput
        label={one.expected === 'regex' ? 'Pattern' : 'Text'}
        placeholder={one.expected === 'regex' ? '^(yes|no)' : 'Paris'}
        autoComplete="off"
        value={one.text}
        error={error}
        onChange={(event) => onChange({ ...one, text: event.currentTarget.value })}
      />
    )}
    <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove case ${place}`} onClick={onRemove}>
      <Trash2 size={15} />
    </ActionIcon>
  </fieldset>
)
