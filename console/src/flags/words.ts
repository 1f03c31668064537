import type { FieldWords } from '../parts/form/field.ts'

const type: Readonly<Record<string, string>> = {
  boolean: 'On or off',
  string: 'A text',
  number: 'A number',
  json: 'A structured value (JSON)',
}
const common: Readonly<Record<string, FieldWords>> = {
  name: { title: 'Name', help: 'For your team' },
  description: { title: 'Description', help: 'What it switches, and when it can go' },
  owner: { title: 'Looked after by', help: 'Whom to ask about it' },
  tags: { title: 'Tags' },
  rules: { isHidden: true },
  schedule: { isHidden: true },
  is_enabled: { isHidden: true },
}

/** The words of the forms of flags. Values have their own controls on the page of the flag. */
export const words = {
  type,
  edit: { ...common, off_value: { isHidden: true }, default_value: { isHidden: true } } as Readonly<
    Record<string, FieldWords>
  >,
}
