import { MultiSelect, TagsInput, type TagsInputProps } from '@mantine/core'
import { type Control, choiceLabel } from './field.ts'
import { referenceOf, useChoices } from './references.ts'
import { type Schema, typeOf } from './schema.ts'

/** Several texts, with those that the project has to choose from. */
const Tags = ({ reference, ...rest }: TagsInputProps & { reference: string | undefined }) => {
  const found = useChoices(reference, '', undefined)
  return <TagsInput {...rest} data={found?.choices.map(({ value }) => value) ?? []} />
}

/** Whether the items are texts, numbers or choices, which one control holds. */
export const isPlainItem = (item: Schema): boolean =>
  item.enum !== undefined || ['string', 'integer', 'number'].includes(typeOf(item) ?? '')

/** Several texts, numbers or choices. */
export const ListField = ({ item, ...control }: Control & { readonly item: Schema }) => {
  const { name, schema, words, value, set, common } = control
  const values = ((value as unknown[]) ?? []).map(String)
  if (item.enum)
    return (
      <MultiSelect
        {...common}
        clearable
        data={item.enum.map((one) => ({ value: String(one), label: choiceLabel(one, words) }))}
        value={values}
        onChange={set}
      />
    )
  return (
    <Tags
      {...common}
      reference={referenceOf(name.replace(/s$/, ''), words.from ?? schema['x-form']?.from)}
      placeholder="Type one and press Enter"
      value={values}
      onChange={(next) => set(typeOf(item) === 'string' ? next : next.map(Number))}
    />
  )
}
