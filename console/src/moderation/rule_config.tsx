import { NumberInput, SegmentedControl, TagsInput, TextInput } from '@mantine/core'
import type { Row } from '../api.ts'
import type { Type } from './rule_words.ts'

/** What a rule of one kind looks for. */
export const Config = ({ type, config, set }: { type: Type; config: Row; set: (next: Row) => void }) => {
  const change = (name: string) => (value: unknown) => set({ ...config, [name]: value })
  const number = (name: string, label: string, help?: string) => (
    <NumberInput
      label={label}
      description={help}
      min={1}
      value={(config[name] as number | undefined) ?? ''}
      onChange={change(name)}
    />
  )
  if (type === 'keyword')
    return (
      <>
        <TagsInput
          label="Words and phrases"
          description="Upper and lower case, invisible signs and punctuation between words make no difference"
          placeholder="Type one, press Enter"
          splitChars={[',', '\n']}
          value={(config['words'] as string[]) ?? []}
          onChange={change('words')}
        />
        <SegmentedControl
          aria-label="Match"
          data={[
            { value: 'word', label: 'Whole words' },
            { value: 'substring', label: 'Parts of words too' },
          ]}
          value={String(config['match'] ?? 'word')}
          onChange={change('match')}
        />
      </>
    )
  if (type === 'link')
    return (
      <TagsInput
        label="Sites that may be linked"
        description="With what is below them. All others are caught"
        placeholder="example.com"
        value={(config['allow_domains'] as string[]) ?? []}
        onChange={change('allow_domains')}
      />
    )
  if (type === 'regex')
    return (
      <TextInput
        label="Pattern"
        description="Syntax of RE2; (?i) at its beginning for any case"
        value={String(config['pattern'] ?? '')}
        onChange={(event) => change('pattern')(event.currentTarget.value)}
        ff="monospace"
      />
    )
  if (type === 'rate')
    return (
      <div className="pair">
        {number('max', 'At most', 'Texts of one user')}
        {number('window_seconds', 'In so many seconds', 'From the first one')}
      </div>
    )
  if (type === 'new_account') return number('max_age_hours', 'Hours since they joined')
  return (
    <div className="pair">
      {number('count', 'Reports', 'Of different users')}
      {number('window_hours', 'Within hours')}
    </div>
  )
}
