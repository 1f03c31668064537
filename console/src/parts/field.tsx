import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type Props = {
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  readonly type?: 'text' | 'number' | 'date' | 'datetime-local' | 'search'
  readonly isRequired?: boolean
  /** Values that are proposed; others may be written. */
  readonly list?: readonly string[]
}

/** A labelled input. */
export const TextField = ({ label, value, onValue, type = 'text', isRequired = false, list }: Props) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        // one of five: the types of the elements are a union that a variable does not fit
        type={type as 'text'}
        value={value}
        required={isRequired}
        {...(list ? { list: `${id}-list` } : {})}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
      {list && (
        <datalist id={`${id}-list`}>
          {list.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </div>
  )
}

type ChoiceProps = Omit<Props, 'type' | 'list'> & { readonly children: ComponentChildren }

/** A labelled choice of the options that are its children. */
export const ChoiceField = ({ label, value, onValue, isRequired = false, children }: ChoiceProps) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} required={isRequired} onInput={(event) => onValue(event.currentTarget.value)}>
        {children}
      </select>
    </div>
  )
}

/** Times of rows as people of this place read them. */
export const timeOf = (value: unknown): string =>
  typeof value === 'string' && value !== '' ? new Date(value).toLocaleString() : ''
