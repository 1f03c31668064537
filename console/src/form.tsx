import { useId, useState } from 'preact/hooks'
import { TrellisError } from '../../sdk/src/index.ts'
import { bodyOf, type Field, fieldOfRefusal, fieldsOf, type Named, type Schema, textOf } from './schema.ts'
import { texts } from './texts.ts'

export const Refusal = ({ error }: { error: unknown }) => {
  if (error === undefined) return null
  const [code, message] = error instanceof TrellisError ? [error.code, error.message] : ['', String(error)]
  return (
    <p class="refusal" role="alert">
      {code !== '' && <code>{code}</code>} {message}
    </p>
  )
}

const labelOf = (name: string) => {
  const words = name.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

type ControlProps = {
  readonly field: Field
  readonly id: string
  readonly text: string
  readonly wrong: string | undefined
  readonly onText: (text: string) => void
}

const choicesOf = ({ kind, schema }: Field): readonly (readonly [string, string])[] =>
  kind === 'boolean'
    ? [
        ['true', texts.yes],
        ['false', texts.no],
      ]
    : (schema.enum ?? []).filter((value) => value !== null).map((value) => [String(value), String(value)] as const)

const Control = ({ field, id, text, wrong, onText }: ControlProps) => {
  const { name, kind, isRequired, schema } = field
  const common = {
    id,
    name,
    required: isRequired,
    'aria-invalid': wrong !== undefined,
    ...(wrong || schema.description ? { 'aria-describedby': `${id}-about` } : {}),
    onInput: (event: { currentTarget: { value: string } }) => onText(event.currentTarget.value),
  }
  if (kind === 'choice' || kind === 'boolean') {
    return (
      <select {...common} value={text}>
        <option value="">{texts.unset}</option>
        {choicesOf(field).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    )
  }
  if (kind === 'json' || kind === 'longtext') {
    return <textarea {...common} rows={kind === 'json' ? 5 : 3} spellcheck={kind !== 'json'} value={text} />
  }
  if (kind === 'integer' || kind === 'number') {
    const step = kind === 'integer' ? 1 : 'any'
    return <input {...common} type="number" step={step} min={schema.minimum} max={schema.maximum} value={text} />
  }
  const bounds = { autocomplete: 'off', maxLength: schema.maxLength } as const
  if (schema.format === 'email') return <input {...common} {...bounds} type="email" value={text} />
  return <input {...common} {...bounds} type="text" value={text} />
}

type FormProps = {
  readonly name: string
  readonly schema: Schema
  readonly named: Named
  readonly row?: Readonly<Record<string, unknown>>
  readonly submit: string
  /** The label of a second button, where it can be tried first. */
  readonly trial?: string
  readonly onSubmit: (body: Record<string, unknown>, isTrial: boolean) => Promise<void>
}

/** A form for a schema. A refusal that names a field is shown at it, any other above the button. */
export const Form = ({ name, schema, named, row = {}, submit, trial, onSubmit }: FormProps) => {
  const form = useId()
  const fields = fieldsOf(schema, named)
  const [values, setValues] = useState(() =>
    Object.fromEntries(fields.map((field) => [field.name, textOf(field.kind, row[field.name])])),
  )
  const [error, setError] = useState<unknown>()
  const [badJson, setBadJson] = useState<readonly string[]>([])
  const [isSending, setSending] = useState(false)
  const refused = error instanceof TrellisError ? fieldOfRefusal(error.details, fields) : undefined
  const wrongOf = (field: string) => {
    if (badJson.includes(field)) return texts.invalidJson
    return refused === field && error instanceof TrellisError ? error.message : undefined
  }
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    const { body, wrong } = bodyOf(fields, values, row)
    setBadJson(wrong)
    setError(undefined)
    if (wrong.length > 0) return
    setSending(true)
    try {
      await onSubmit(body, event.submitter?.getAttribute('value') === 'trial')
    } catch (reason) {
      setError(reason)
    } finally {
      setSending(false)
    }
  }
  return (
    <form aria-label={name} onSubmit={send}>
      {fields.map((field) => {
        const id = `${form}-${field.name}`
        const wrong = wrongOf(field.name)
        return (
          <div class="field" key={field.name}>
            <label for={id}>
              {labelOf(field.name)}
              {field.isRequired && <small aria-hidden="true"> {texts.required}</small>}
            </label>
            <Control
              field={field}
              id={id}
              text={values[field.name] ?? ''}
              wrong={wrong}
              onText={(text) => setValues((before) => ({ ...before, [field.name]: text }))}
            />
            {(wrong ?? field.schema.description) && (
              <small id={`${id}-about`} class={wrong ? 'refusal' : ''} role={wrong ? 'alert' : undefined}>
                {wrong ?? field.schema.description}
              </small>
            )}
          </div>
        )
      })}
      {refused === undefined && <Refusal error={error} />}
      <p class="actions">
        {trial && (
          <button type="submit" value="trial" disabled={isSending}>
            {trial}
          </button>
        )}
        <button type="submit" disabled={isSending}>
          {submit}
        </button>
      </p>
    </form>
  )
}
