import { useState } from 'react'
import { type FormState, type Frame, valueAt } from './field.ts'
import { JsonCode } from './json_code.tsx'
import { Labelled } from './labelled.tsx'

/** A value that may be anything, as JSON: for what has no editor of its own. */
export const JsonField = ({ form, frame }: { form: FormState; frame: Frame }) => {
  const { path, label, help, error } = frame
  const value = valueAt(form.getValues(), path)
  const [first] = useState(() => (value === undefined || value === null ? '' : JSON.stringify(value, null, 2)))
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error}>
      <div className="json-field">
        <JsonCode
          label={label}
          value={first}
          placeholder="{ }"
          onChange={(text) => {
            try {
              form.setFieldValue(path, text.trim() === '' ? undefined : JSON.parse(text))
              form.clearFieldError(path)
            } catch {
              form.setFieldError(path, 'This is not JSON yet')
            }
          }}
        />
      </div>
    </Labelled>
  )
}
